#include "membership.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wasm.h>
#include <wasmtime.h>
#include <wasmtime/component.h>

typedef wasmtime_component_val_t val;

static const char INTERFACE[] = "tidegate:community/membership@0.1.0";

enum function { LEAVE, REJOIN, STATUS, SIGNAL, SERIALIZE, DESERIALIZE, RESTORE, FUNCTIONS };

static const char *const NAMES[FUNCTIONS] = {
    "leave",  "rejoin", "status", "signal", "serialize-membership", "deserialize-membership",
    "restore"};

struct rules {
  wasm_engine_t *engine;
  wasmtime_component_t *component;
  wasmtime_component_linker_t *linker; /* empty: the component imports nothing */
  wasmtime_component_export_index_t *exports[FUNCTIONS];
  wasmtime_store_t *store; /* of the instance; NULL while there is none */
  wasmtime_component_func_t functions[FUNCTIONS];
  unsigned instances;
  char error[512];
};

bool u64_from_text(const char *text, uint64_t *number) {
  if (*text == '\0') return false;
  uint64_t value = 0;
  for (; *text != '\0'; text++) {
    if (*text < '0' || *text > '9') return false;
    unsigned digit = (unsigned)(*text - '0');
    if (value > (UINT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  *number = value;
  return true;
}

/* ---- Loading ---- */

static rules_outcome fail(rules *rules, const char *reason) {
  snprintf(rules->error, sizeof rules->error, "%s", reason);
  return RULES_FAILED;
}

/* Takes the error. */
static rules_outcome fail_with(rules *rules, wasmtime_error_t *error) {
  wasm_name_t message;
  wasmtime_error_message(error, &message);
  snprintf(rules->error, sizeof rules->error, "%.*s", (int)message.size, message.data);
  wasm_byte_vec_delete(&message);
  wasmtime_error_delete(error);
  return RULES_FAILED;
}

static bool read_file(const char *path, wasm_byte_vec_t *content) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return false;
  bool complete = false;
  long size;
  if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0) {
    rewind(file);
    wasm_byte_vec_new_uninitialized(content, (size_t)size);
    complete = fread(content->data, 1, content->size, file) == content->size;
    if (!complete) wasm_byte_vec_delete(content);
  }
  fclose(file);
  return complete;
}

static rules_outcome compile(rules *rules, const char *path) {
  wasm_byte_vec_t content;
  if (!read_file(path, &content)) return fail(rules, "the file cannot be read");
  wasmtime_error_t *error = wasmtime_component_new(
      rules->engine, (const uint8_t *)content.data, content.size, &rules->component);
  wasm_byte_vec_delete(&content);
  if (error != NULL) return fail_with(rules, error);

  wasmtime_component_export_index_t *interface = wasmtime_component_get_export_index(
      rules->component, NULL, INTERFACE, strlen(INTERFACE));
  if (interface == NULL) return fail(rules, "the component does not export the interface");
  bool complete = true;
  for (int i = 0; i < FUNCTIONS; i++) {
    rules->exports[i] = wasmtime_component_get_export_index(rules->component, interface,
                                                            NAMES[i], strlen(NAMES[i]));
    complete = complete && rules->exports[i] != NULL;
  }
  wasmtime_component_export_index_delete(interface);
  return complete ? RULES_OK : fail(rules, "the interface lacks a function");
}

rules *rules_load(const char *path) {
  rules *rules = calloc(1, sizeof *rules);
  if (rules == NULL) return NULL;
  rules->engine = wasm_engine_new();
  rules->linker = wasmtime_component_linker_new(rules->engine);
  if (compile(rules, path) != RULES_OK) {
    fprintf(stderr, "%s: %s\n", path, rules->error);
    rules_free(rules);
    return NULL;
  }
  return rules;
}

static void discard_instance(rules *rules) {
  if (rules->store != NULL) wasmtime_store_delete(rules->store);
  rules->store = NULL;
}

void rules_free(rules *rules) {
  if (rules == NULL) return;
  discard_instance(rules);
  for (int i = 0; i < FUNCTIONS; i++) {
    if (rules->exports[i] != NULL) wasmtime_component_export_index_delete(rules->exports[i]);
  }
  if (rules->component != NULL) wasmtime_component_delete(rules->component);
  wasmtime_component_linker_delete(rules->linker);
  wasm_engine_delete(rules->engine);
  free(rules);
}

const char *rules_error(const rules *rules) { return rules->error; }

unsigned rules_instances(const rules *rules) { return rules->instances; }

/* ---- Values for the component; whoever builds one deletes it ---- */

static void name_from(wasm_name_t *name, const char *text) {
  wasm_byte_vec_new(name, strlen(text), text);
}

static val u64_val(uint64_t number) {
  return (val){.kind = WASMTIME_COMPONENT_U64, .of.u64 = number};
}

static val enum_val(const char *name) {
  val value = {.kind = WASMTIME_COMPONENT_ENUM};
  name_from(&value.of.enumeration, name);
  return value;
}

/* Takes the content; NULL is `none`. */
static val option_val(val *content) {
  return (val){.kind = WASMTIME_COMPONENT_OPTION,
               .of.option = content == NULL ? NULL : wasmtime_component_val_new(content)};
}

static val list_val(size_t size) {
  val value = {.kind = WASMTIME_COMPONENT_LIST};
  wasmtime_component_vallist_new_uninit(&value.of.list, size);
  return value;
}

static val bytes_val(const uint8_t *bytes, size_t size) {
  val value = list_val(size);
  for (size_t i = 0; i < size; i++) {
    value.of.list.data[i] = (val){.kind = WASMTIME_COMPONENT_U8, .of.u8 = bytes[i]};
  }
  return value;
}

static const char *status_name(membership_status status) {
  switch (status) {
  case MEMBERSHIP_ACTIVE: return "active";
  case MEMBERSHIP_LEFT: return "left";
  }
  return "no-status"; /* which the component's type refuses */
}

static val membership_val(membership membership) {
  val left_at = u64_val(membership.left_at_ns);
  val value = {.kind = WASMTIME_COMPONENT_RECORD};
  wasmtime_component_valrecord_new_uninit(&value.of.record, 3);
  wasmtime_component_valrecord_entry_t *fields = value.of.record.data;
  name_from(&fields[0].name, "user-id");
  fields[0].val = u64_val(membership.user_id);
  name_from(&fields[1].name, "status");
  fields[1].val = enum_val(status_name(membership.status));
  name_from(&fields[2].name, "left-at-ns");
  fields[2].val = option_val(membership.has_left_at ? &left_at : NULL);
  return value;
}

/* ---- Values from the component, whose types wasmtime has checked ---- */

static bool is(const wasm_name_t *name, const char *text) {
  return name->size == strlen(text) && memcmp(name->data, text, name->size) == 0;
}

/* Fields come in the order of the contract. */
static const val *field(const val *record, size_t index) {
  return &record->of.record.data[index].val;
}

static membership membership_from(const val *record) {
  const val *left_at = field(record, 2)->of.option;
  return (membership){
      .user_id = field(record, 0)->of.u64,
      .status = is(&field(record, 1)->of.enumeration, "left") ? MEMBERSHIP_LEFT
                                                              : MEMBERSHIP_ACTIVE,
      .has_left_at = left_at != NULL,
      .left_at_ns = left_at == NULL ? 0 : left_at->of.u64,
  };
}

static fan_out fan_out_from(const val *value) {
  fan_out open = {false, false};
  for (size_t i = 0; i < value->of.flags.size; i++) {
    const wasm_name_t *way = &value->of.flags.data[i];
    open.cohort_attribution = open.cohort_attribution || is(way, "cohort-attribution");
    open.community_forwarding = open.community_forwarding || is(way, "community-forwarding");
  }
  return open;
}

/* ---- Calls ---- */

static rules_outcome instantiate(rules *rules) {
  rules->store = wasmtime_store_new(rules->engine, NULL, NULL);
  rules->instances++;
  wasmtime_context_t *context = wasmtime_store_context(rules->store);
  wasmtime_component_instance_t instance;
  wasmtime_error_t *error = wasmtime_component_linker_instantiate(rules->linker, context,
                                                                  rules->component, &instance);
  if (error != NULL) {
    discard_instance(rules);
    return fail_with(rules, error);
  }
  for (int i = 0; i < FUNCTIONS; i++) {
    if (!wasmtime_component_instance_get_func(&instance, context, rules->exports[i],
                                              &rules->functions[i])) {
      discard_instance(rules);
      return fail(rules, "an export is no function");
    }
  }
  return RULES_OK;
}

/* Deletes the arguments. After RULES_OK the caller deletes the result. What a failed
 * call left behind in its instance is not known, so that instance is discarded. */
static rules_outcome call(rules *rules, enum function function, val *arguments, size_t count,
                          val *result) {
  rules_outcome outcome = rules->store == NULL ? instantiate(rules) : RULES_OK;
  if (outcome == RULES_OK) {
    *result = (val){.kind = WASMTIME_COMPONENT_BOOL};
    wasmtime_error_t *error =
        wasmtime_component_func_call(&rules->functions[function],
                                     wasmtime_store_context(rules->store), arguments, count,
                                     result, 1);
    if (error != NULL) {
      outcome = fail_with(rules, error);
      discard_instance(rules);
    }
  }
  for (size_t i = 0; i < count; i++) wasmtime_component_val_delete(&arguments[i]);
  return outcome;
}

rules_outcome rules_leave(rules *rules, membership current, uint64_t now, membership *result) {
  val arguments[] = {membership_val(current), u64_val(now)}, answer;
  if (call(rules, LEAVE, arguments, 2, &answer) != RULES_OK) return RULES_FAILED;
  *result = membership_from(&answer);
  wasmtime_component_val_delete(&answer);
  return RULES_OK;
}

rules_outcome rules_rejoin(rules *rules, membership current, membership *result) {
  val arguments[] = {membership_val(current)}, answer;
  if (call(rules, REJOIN, arguments, 1, &answer) != RULES_OK) return RULES_FAILED;
  *result = membership_from(&answer);
  wasmtime_component_val_delete(&answer);
  return RULES_OK;
}

rules_outcome rules_status(rules *rules, uint64_t user, const uint8_t *stored, size_t length,
                           membership *result) {
  val record = stored == NULL ? (val){0} : bytes_val(stored, length);
  val arguments[] = {u64_val(user), option_val(stored == NULL ? NULL : &record)}, answer;
  if (call(rules, STATUS, arguments, 2, &answer) != RULES_OK) return RULES_FAILED;
  bool well_formed = answer.of.result.is_ok;
  if (well_formed) *result = membership_from(answer.of.result.val);
  wasmtime_component_val_delete(&answer);
  return well_formed ? RULES_OK : RULES_MALFORMED;
}

rules_outcome rules_signal(rules *rules, membership current, fan_out *result) {
  val arguments[] = {membership_val(current)}, answer;
  if (call(rules, SIGNAL, arguments, 1, &answer) != RULES_OK) return RULES_FAILED;
  *result = fan_out_from(&answer);
  wasmtime_component_val_delete(&answer);
  return RULES_OK;
}

rules_outcome rules_serialize(rules *rules, membership current, uint8_t record[RECORD_MAX],
                              size_t *length) {
  val arguments[] = {membership_val(current)}, answer;
  if (call(rules, SERIALIZE, arguments, 1, &answer) != RULES_OK) return RULES_FAILED;
  *length = answer.of.list.size;
  bool fits = *length <= RECORD_MAX;
  for (size_t i = 0; fits && i < *length; i++) record[i] = answer.of.list.data[i].of.u8;
  wasmtime_component_val_delete(&answer);
  return fits ? RULES_OK : fail(rules, "the record is longer than the contract allows");
}

rules_outcome rules_deserialize(rules *rules, uint64_t user, const uint8_t *record,
                                size_t length, membership *result) {
  val arguments[] = {u64_val(user), bytes_val(record, length)}, answer;
  if (call(rules, DESERIALIZE, arguments, 2, &answer) != RULES_OK) return RULES_FAILED;
  bool well_formed = answer.of.option != NULL;
  if (well_formed) *result = membership_from(answer.of.option);
  wasmtime_component_val_delete(&answer);
  return well_formed ? RULES_OK : RULES_MALFORMED;
}

rules_outcome rules_restore(rules *rules, const uint64_t *users, size_t user_count,
                            const uint32_t *lengths, size_t length_count,
                            const uint8_t *bytes, size_t byte_count, restored *results) {
  val arguments[] = {list_val(user_count), list_val(length_count),
                     bytes_val(bytes, byte_count)};
  for (size_t i = 0; i < user_count; i++) arguments[0].of.list.data[i] = u64_val(users[i]);
  for (size_t i = 0; i < length_count; i++) {
    arguments[1].of.list.data[i] =
        (val){.kind = WASMTIME_COMPONENT_U32, .of.u32 = lengths[i]};
  }
  val answer;
  if (call(rules, RESTORE, arguments, 3, &answer) != RULES_OK) return RULES_FAILED;
  bool complete = answer.of.list.size == user_count;
  for (size_t i = 0; complete && i < user_count; i++) {
    const val *entry = answer.of.list.data[i].of.option;
    results[i] = (restored){.malformed = entry == NULL};
    if (entry != NULL) {
      results[i].membership = membership_from(field(entry, 0));
      results[i].fan_out = fan_out_from(field(entry, 1));
    }
  }
  wasmtime_component_val_delete(&answer);
  return complete ? RULES_OK : fail(rules, "restore did not answer for each user");
}
