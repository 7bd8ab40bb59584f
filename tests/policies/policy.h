/* What a policy decides: which bytes record a membership, and what a membership lets
   through. The rest is in membership.c, the same for all. */
#ifndef POLICY_H
#define POLICY_H

#include "membership_component.h"

typedef exports_membership_community_membership_t membership_t;
typedef exports_membership_fan_out_t fan_out_t;

enum {
    ACTIVE = EXPORTS_TYPES_MEMBERSHIP_STATUS_ACTIVE,
    LEFT = EXPORTS_TYPES_MEMBERSHIP_STATUS_LEFT,
    COHORTS = EXPORTS_TYPES_FAN_OUT_COHORT_ATTRIBUTION,
    COMMUNITIES = EXPORTS_TYPES_FAN_OUT_COMMUNITY_FORWARDING,
};

/* Why bytes are no record, as in `9 bytes expected, 8 found`. */
typedef struct {
    const char *expected;
    size_t found;
} malformed_t;

extern const size_t record_length;

/* Writes `record_length` bytes. */
void write_record(uint8_t *record, const membership_t *membership);

/* Reads what `write_record` wrote into a membership whose user is set already. For any
   other bytes, false and the reason. */
bool read_record(const uint8_t *bytes, size_t length, membership_t *membership,
                 malformed_t *malformed);

fan_out_t fan_out(const membership_t *membership);

/* The instant of a membership as eight bytes in little endian, where 0 is none. */
void write_instant(uint8_t *bytes, const membership_t *membership);
void read_instant(const uint8_t *bytes, membership_t *membership);

#endif
