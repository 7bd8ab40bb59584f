/* The component of rules behind C functions.
 *
 * These functions know how the component is called through wasmtime's C API: how
 * its values are built and read, and what happens to an instance whose call failed.
 */
#ifndef TIDEGATE_MEMBERSHIP_H
#define TIDEGATE_MEMBERSHIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { MEMBERSHIP_ACTIVE, MEMBERSHIP_LEFT } membership_status;

typedef struct {
  uint64_t user_id;
  membership_status status;
  bool has_left_at; /* false for a user who never left */
  uint64_t left_at_ns;
} membership;

typedef struct {
  bool cohort_attribution;
  bool community_forwarding;
} fan_out;

typedef struct {
  bool malformed; /* then the other two say nothing */
  membership membership;
  fan_out fan_out;
} restored;

typedef enum {
  RULES_OK,
  RULES_MALFORMED, /* the stored bytes are no record */
  RULES_FAILED,    /* rules_error says why; the next call gets a new instance */
} rules_outcome;

/* The longest record that the contract allows. */
#define RECORD_MAX 1024

typedef struct rules rules;

/* The number that a text in decimal digits stands for; false if it is anything
 * else or does not fit. strtoull would turn -1 into 2^64 - 1. */
bool u64_from_text(const char *text, uint64_t *number);

/* Compiles the component at `path`; NULL if that fails, with the reason on
 * standard error. */
rules *rules_load(const char *path);
void rules_free(rules *rules);

/* Why the latest call failed. */
const char *rules_error(const rules *rules);

/* How many instances there have been. */
unsigned rules_instances(const rules *rules);

rules_outcome rules_leave(rules *rules, membership current, uint64_t now, membership *result);
rules_outcome rules_rejoin(rules *rules, membership current, membership *result);

/* `stored` is NULL for a user without a record. */
rules_outcome rules_status(rules *rules, uint64_t user, const uint8_t *stored, size_t length,
                           membership *result);
rules_outcome rules_signal(rules *rules, membership current, fan_out *result);
rules_outcome rules_serialize(rules *rules, membership current, uint8_t record[RECORD_MAX],
                              size_t *length);
rules_outcome rules_deserialize(rules *rules, uint64_t user, const uint8_t *record,
                                size_t length, membership *result);

/* Record i belongs to users[i] and is the next lengths[i] bytes of `bytes`. `results`
 * has room for one entry for each user. */
rules_outcome rules_restore(rules *rules, const uint64_t *users, size_t user_count,
                            const uint32_t *lengths, size_t length_count,
                            const uint8_t *bytes, size_t byte_count, restored *results);

#endif
