/* Runs the golden vectors: check_vectors COMPONENT VECTORS.
 *
 * A vector whose form is not the expected one ends the run like one that disagrees.
 */
#include "check_module.h"
#include "membership.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* ---- Saying what disagrees ---- */

static void write_membership(FILE *out, membership membership) {
  fprintf(out, "user %" PRIu64 " status %d ", membership.user_id, membership.status);
  if (membership.has_left_at) {
    fprintf(out, "left at %" PRIu64, membership.left_at_ns);
  } else {
    fprintf(out, "never left");
  }
}

static void write_bytes(FILE *out, const uint8_t *bytes, size_t length) {
  for (size_t i = 0; i < length; i++) fprintf(out, "%02x", bytes[i]);
}

static void begin_complaint(const char *group, const json_t *vector) {
  char *text = json_dumps(vector, JSON_COMPACT | JSON_ENCODE_ANY);
  fprintf(stderr, "c: %s %s\n", group, text != NULL ? text : "");
  free(text);
}

static void need(bool condition, const char *group, const json_t *vector, const char *problem) {
  if (condition) return;
  begin_complaint(group, vector);
  fprintf(stderr, "%s\n", problem);
  exit(1);
}

static void agree_outcome(const rules *rules, const char *group, const json_t *vector,
                          rules_outcome expected, rules_outcome found) {
  static const char *const names[] = {"an answer", "malformed", "a failed call"};
  if (found == expected) return;
  begin_complaint(group, vector);
  fprintf(stderr, "expected %s\nfound    %s %s\n", names[expected], names[found],
          found == RULES_FAILED ? rules_error(rules) : "");
  exit(1);
}

static bool same_membership(membership a, membership b) {
  return a.user_id == b.user_id && a.status == b.status && a.has_left_at == b.has_left_at &&
         (!a.has_left_at || a.left_at_ns == b.left_at_ns);
}

static void agree_membership(const char *group, const json_t *vector, membership expected,
                             membership found) {
  if (same_membership(expected, found)) return;
  begin_complaint(group, vector);
  fprintf(stderr, "expected ");
  write_membership(stderr, expected);
  fprintf(stderr, "\nfound    ");
  write_membership(stderr, found);
  fprintf(stderr, "\n");
  exit(1);
}

static void agree_fan_out(const char *group, const json_t *vector, fan_out expected,
                          fan_out found) {
  if (expected.cohort_attribution == found.cohort_attribution &&
      expected.community_forwarding == found.community_forwarding) {
    return;
  }
  begin_complaint(group, vector);
  fprintf(stderr, "expected cohort %d, community %d\nfound    cohort %d, community %d\n",
          expected.cohort_attribution, expected.community_forwarding,
          found.cohort_attribution, found.community_forwarding);
  exit(1);
}

/* ---- Reading the vectors ---- */

static const json_t *part(const char *group, const json_t *vector, const char *key) {
  const json_t *part = json_object_get(vector, key);
  need(part != NULL, group, vector, key);
  return part;
}

static uint64_t number(const char *group, const json_t *vector, const json_t *text) {
  uint64_t number = 0;
  need(json_is_string(text) && u64_from_text(json_string_value(text), &number), group, vector,
       "a number does not fit");
  return number;
}

static membership standing(const char *group, const json_t *vector) {
  const json_t *left_at = part(group, vector, "left_at_ns");
  const char *status = json_string_value(part(group, vector, "status"));
  bool left = status != NULL && strcmp(status, "left") == 0;
  need(left || (status != NULL && strcmp(status, "active") == 0), group, vector,
       "the status is unknown");
  membership membership = {
      .user_id = number(group, vector, part(group, vector, "user_id")),
      .status = left ? MEMBERSHIP_LEFT : MEMBERSHIP_ACTIVE,
      .has_left_at = !json_is_null(left_at),
  };
  if (membership.has_left_at) membership.left_at_ns = number(group, vector, left_at);
  return membership;
}

typedef struct {
  uint8_t *data;
  size_t size;
} bytes;

/* Never NULL, also for no bytes at all. The caller frees the data. */
static bytes bytes_from_hex(const char *group, const json_t *vector, const json_t *hex) {
  const char *text = json_string_value(hex);
  need(text != NULL && strlen(text) % 2 == 0, group, vector, "the bytes are no hex digits");
  bytes bytes = {malloc(strlen(text) / 2 + 1), strlen(text) / 2};
  need(bytes.data != NULL, group, vector, "out of memory");
  for (size_t i = 0; i < bytes.size; i++) {
    need(sscanf(text + 2 * i, "%2" SCNx8, &bytes.data[i]) == 1, group, vector,
         "the bytes are no hex digits");
  }
  return bytes;
}

static const json_t *group_of(const json_t *vectors, const char *group) {
  const json_t *found = json_object_get(vectors, group);
  need(json_is_array(found), group, vectors, "the group is missing");
  return found;
}

/* ---- The checks ---- */

static void check_without_record(rules *rules, const json_t *vector) {
  membership expected = standing("without_record", vector), found;
  agree_outcome(rules, "without_record", vector, RULES_OK,
                rules_status(rules, expected.user_id, NULL, 0, &found));
  agree_membership("without_record", vector, expected, found);
}

static void check_serde(rules *rules, const json_t *vector) {
  membership expected = standing("serde", part("serde", vector, "membership")), found;
  bytes record = bytes_from_hex("serde", vector, part("serde", vector, "bytes"));
  uint8_t written[RECORD_MAX];
  size_t length;
  agree_outcome(rules, "serialize", vector, RULES_OK,
                rules_serialize(rules, expected, written, &length));
  if (length != record.size || memcmp(written, record.data, length) != 0) {
    begin_complaint("serialize", vector);
    fprintf(stderr, "expected ");
    write_bytes(stderr, record.data, record.size);
    fprintf(stderr, "\nfound    ");
    write_bytes(stderr, written, length);
    fprintf(stderr, "\n");
    exit(1);
  }
  agree_outcome(rules, "deserialize", vector, RULES_OK,
                rules_deserialize(rules, expected.user_id, record.data, record.size, &found));
  agree_membership("deserialize", vector, expected, found);
  agree_outcome(rules, "status", vector, RULES_OK,
                rules_status(rules, expected.user_id, record.data, record.size, &found));
  agree_membership("status", vector, expected, found);
  free(record.data);
}

static void check_leave(rules *rules, const json_t *vector) {
  membership current = standing("leave", part("leave", vector, "current")), found;
  uint64_t now = number("leave", vector, part("leave", vector, "now"));
  agree_outcome(rules, "leave", vector, RULES_OK, rules_leave(rules, current, now, &found));
  agree_membership("leave", vector, standing("leave", part("leave", vector, "result")), found);
}

static void check_rejoin(rules *rules, const json_t *vector) {
  membership current = standing("rejoin", part("rejoin", vector, "current")), found;
  agree_outcome(rules, "rejoin", vector, RULES_OK, rules_rejoin(rules, current, &found));
  agree_membership("rejoin", vector, standing("rejoin", part("rejoin", vector, "result")),
                   found);
}

static void check_signal(rules *rules, const json_t *vector) {
  fan_out expected = {false, false}, found;
  size_t index;
  json_t *way;
  json_array_foreach(part("signal", vector, "fan_out"), index, way) {
    const char *name = json_string_value(way);
    bool cohort = name != NULL && strcmp(name, "cohort-attribution") == 0;
    bool community = name != NULL && strcmp(name, "community-forwarding") == 0;
    need(cohort || community, "signal", vector, "the fan-out is unknown");
    expected.cohort_attribution = expected.cohort_attribution || cohort;
    expected.community_forwarding = expected.community_forwarding || community;
  }
  membership current = standing("signal", part("signal", vector, "current"));
  agree_outcome(rules, "signal", vector, RULES_OK, rules_signal(rules, current, &found));
  agree_fan_out("signal", vector, expected, found);
}

static void check_malformed(rules *rules, const json_t *vector) {
  bytes record = bytes_from_hex("malformed", vector, vector);
  membership found;
  agree_outcome(rules, "malformed, deserialize", vector, RULES_MALFORMED,
                rules_deserialize(rules, 42, record.data, record.size, &found));
  agree_outcome(rules, "malformed, status", vector, RULES_MALFORMED,
                rules_status(rules, 42, record.data, record.size, &found));
  free(record.data);
}

/* The arguments of `restore` and what it is to answer. */
typedef struct {
  uint64_t *users;
  uint32_t *lengths;
  restored *expected;
  size_t count;
  uint8_t *column;
  size_t size;
} stored;

static void append(stored *stored, const json_t *vector, const json_t *hex, restored expected) {
  bytes record = bytes_from_hex("restore", vector, hex);
  stored->users[stored->count] = expected.malformed ? 42 : expected.membership.user_id;
  stored->lengths[stored->count] = (uint32_t)record.size;
  stored->expected[stored->count] = expected;
  stored->count++;
  stored->column = realloc(stored->column, stored->size + record.size + 1);
  need(stored->column != NULL, "restore", vector, "out of memory");
  memcpy(stored->column + stored->size, record.data, record.size);
  stored->size += record.size;
  free(record.data);
}

static void agree_restore(rules *rules, const stored *stored, const json_t *vectors) {
  restored *found = calloc(stored->count, sizeof *found);
  need(found != NULL, "restore", NULL, "out of memory");
  agree_outcome(rules, "restore", NULL, RULES_OK,
                rules_restore(rules, stored->users, stored->count, stored->lengths,
                              stored->count, stored->column, stored->size, found));
  for (size_t i = 0; i < stored->count; i++) {
    /* Entry 2i is malformed vector i, entry 2i + 1 is serde vector i. */
    const json_t *vector =
        json_array_get(group_of(vectors, i % 2 == 0 ? "malformed" : "serde"), i / 2);
    need(found[i].malformed == stored->expected[i].malformed, "restore", vector,
         found[i].malformed ? "expected a membership, found none"
                            : "expected none, found a membership");
    if (found[i].malformed) continue;
    agree_membership("restore", vector, stored->expected[i].membership, found[i].membership);
    agree_fan_out("restore", vector, stored->expected[i].fan_out, found[i].fan_out);
  }
  free(found);
}

/* All records in one call, the malformed ones between the others. */
static void check_restore(rules *rules, const json_t *vectors) {
  const json_t *malformed = group_of(vectors, "malformed"), *serde = group_of(vectors, "serde");
  size_t pairs = json_array_size(malformed) < json_array_size(serde)
                     ? json_array_size(malformed)
                     : json_array_size(serde);
  need(pairs > 10, "restore", NULL, "there are too few records");
  stored stored = {.users = calloc(2 * pairs, sizeof *stored.users),
                   .lengths = calloc(2 * pairs, sizeof *stored.lengths),
                   .expected = calloc(2 * pairs, sizeof *stored.expected)};
  need(stored.users && stored.lengths && stored.expected, "restore", NULL, "out of memory");
  for (size_t i = 0; i < pairs; i++) {
    const json_t *bad = json_array_get(malformed, i), *good = json_array_get(serde, i);
    append(&stored, bad, bad, (restored){.malformed = true});
    membership membership = standing("restore", part("restore", good, "membership"));
    bool open = membership.status == MEMBERSHIP_ACTIVE;
    append(&stored, good, part("restore", good, "bytes"),
           (restored){.membership = membership, .fan_out = {open, open}});
  }
  agree_restore(rules, &stored, vectors);

  /* One byte short: the last record, which is a good one, is cut off. */
  stored.size--;
  stored.expected[stored.count - 1].malformed = true;
  agree_restore(rules, &stored, vectors);

  free(stored.users);
  free(stored.lengths);
  free(stored.expected);
  free(stored.column);
}

static size_t check_vectors(rules *rules, const json_t *vectors) {
  static const struct {
    const char *name;
    void (*check)(struct rules *, const json_t *);
  } groups[] = {
      {"without_record", check_without_record},
      {"serde", check_serde},
      {"leave", check_leave},
      {"rejoin", check_rejoin},
      {"signal", check_signal},
      {"malformed", check_malformed},
  };
  need(json_object_size(vectors) == sizeof groups / sizeof *groups, "vectors", NULL,
       "there is a group that this check does not know");
  size_t count = 0;
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
    size_t index;
    json_t *vector;
    json_array_foreach(group_of(vectors, groups[i].name), index, vector) {
      groups[i].check(rules, vector);
      count++;
    }
  }
  check_restore(rules, vectors);
  return count;
}

int main(int count, char **arguments) {
  if (count != 3) {
    fprintf(stderr, "usage: check_vectors COMPONENT VECTORS\n");
    return 2;
  }
  rules *rules = rules_load(arguments[1]);
  if (rules == NULL) return 1;
  json_error_t error;
  json_t *vectors = json_load_file(arguments[2], 0, &error);
  if (vectors == NULL) {
    fprintf(stderr, "c: %s, line %d: %s\n", arguments[2], error.line, error.text);
    return 1;
  }
  check_module(rules);
  printf("c: %zu vectors agree\n", check_vectors(rules, vectors));
  json_decref(vectors);
  rules_free(rules);
  return 0;
}
