/* The record of the component that tidegate ships, with another policy: who has left
   counts in cohorts all the same, and in communities no longer. */

#include "policy.h"

const size_t record_length = 9;

void write_record(uint8_t *record, const membership_t *membership) {
    record[0] = membership->status;
    write_instant(record + 1, membership);
}

bool read_record(const uint8_t *bytes, size_t length, membership_t *membership,
                 malformed_t *malformed) {
    if (length != record_length) {
        *malformed = (malformed_t){"9 bytes", length};
        return false;
    }
    if (bytes[0] != ACTIVE && bytes[0] != LEFT) {
        *malformed = (malformed_t){"status byte 0 or 1", bytes[0]};
        return false;
    }
    membership->status = bytes[0];
    read_instant(bytes + 1, membership);
    return true;
}

fan_out_t fan_out(const membership_t *membership) {
    fan_out_t cohorts = COHORTS;
    return membership->status == ACTIVE ? cohorts | COMMUNITIES : cohorts;
}
