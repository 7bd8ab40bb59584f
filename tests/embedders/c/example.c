/* One user leaves, and the example prints what a platform would store and obey. */
#include "membership.h"

#include <inttypes.h>
#include <stdio.h>

int main(int count, char **arguments) {
  rules *rules = count == 2 ? rules_load(arguments[1]) : NULL;
  if (rules == NULL) return 1;

  membership current = {.user_id = UINT64_MAX, .status = MEMBERSHIP_ACTIVE}, left;
  uint8_t record[RECORD_MAX];
  size_t length;
  fan_out open;
  bool done = rules_leave(rules, current, (UINT64_C(1) << 53) + 1, &left) == RULES_OK &&
              rules_serialize(rules, left, record, &length) == RULES_OK &&
              rules_signal(rules, left, &open) == RULES_OK;
  if (done) {
    printf("user %" PRIu64 " %s at %" PRIu64 "; record ", left.user_id,
           left.status == MEMBERSHIP_LEFT ? "left" : "active", left.left_at_ns);
    for (size_t i = 0; i < length; i++) printf("%02x", record[i]);
    printf("; fan-out%s%s%s\n", open.cohort_attribution ? " cohort-attribution" : "",
           open.community_forwarding ? " community-forwarding" : "",
           open.cohort_attribution || open.community_forwarding ? "" : " none");
  } else {
    fprintf(stderr, "%s\n", rules_error(rules));
  }
  rules_free(rules);
  return done ? 0 : 1;
}
