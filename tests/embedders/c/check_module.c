#include "check_module.h"

#include <stdio.h>
#include <stdlib.h>

static void hold(bool condition, const char *promise, const char *value) {
  if (condition) return;
  fprintf(stderr, "c: %s: %s\n", promise, value);
  exit(1);
}

static void check_numbers(rules *rules) {
  static const struct {
    const char *text;
    uint64_t number;
  } fitting[] = {
      {"0", 0},
      {"9007199254740993", (UINT64_C(1) << 53) + 1},
      {"18446744073709551615", UINT64_MAX},
  };
  for (size_t i = 0; i < sizeof fitting / sizeof *fitting; i++) {
    uint64_t number;
    hold(u64_from_text(fitting[i].text, &number) && number == fitting[i].number,
         "a number that fits is taken", fitting[i].text);
    membership active = {.user_id = number, .status = MEMBERSHIP_ACTIVE}, left;
    hold(rules_leave(rules, active, number, &left) == RULES_OK && left.user_id == number &&
             left.left_at_ns == number,
         "leave returns the number exactly", fitting[i].text);
  }
  static const char *const bad[] = {
      "18446744073709551616", "18446744073709551625", "184467440737095516150",
      "-1", "1e3", "1.0", "0x10", " 1", "1 ", "+1", "", "true",
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    uint64_t number;
    hold(!u64_from_text(bad[i], &number), "what does not fit is refused", bad[i]);
  }
}

static void check_failure(rules *rules) {
  membership active = {.user_id = 42, .status = MEMBERSHIP_ACTIVE}, result;
  membership unknown = {.user_id = 42, .status = (membership_status)2};
  unsigned before = rules_instances(rules);
  hold(rules_status(rules, 42, (const uint8_t *)"abc", 3, &result) == RULES_MALFORMED,
       "three bytes are malformed", "status");
  hold(rules_rejoin(rules, active, &result) == RULES_OK && rules_instances(rules) == before,
       "an answer of the contract costs no instance", "status");
  hold(rules_rejoin(rules, unknown, &result) == RULES_FAILED && *rules_error(rules) != '\0',
       "a status that is none fails with a reason", "rejoin");
  hold(rules_rejoin(rules, active, &result) == RULES_OK, "a failed call spoils no other",
       rules_error(rules));
  hold(rules_instances(rules) == before + 1, "a failed call costs its instance", "rejoin");
}

void check_module(rules *rules) {
  check_numbers(rules);
  check_failure(rules);
}
