/* The policy of the component that tidegate ships, with another record: ten bytes,
   which are a version, the status as a letter, and the instant of the latest leave. */

#include "policy.h"

enum { VERSION = 1 };

const size_t record_length = 10;

void write_record(uint8_t *record, const membership_t *membership) {
    record[0] = VERSION;
    record[1] = membership->status == LEFT ? 'l' : 'a';
    write_instant(record + 2, membership);
}

bool read_record(const uint8_t *bytes, size_t length, membership_t *membership,
                 malformed_t *malformed) {
    if (length != record_length) {
        *malformed = (malformed_t){"10 bytes", length};
        return false;
    }
    if (bytes[0] != VERSION) {
        *malformed = (malformed_t){"version byte 1", bytes[0]};
        return false;
    }
    if (bytes[1] != 'a' && bytes[1] != 'l') {
        *malformed = (malformed_t){"status byte 97 or 108", bytes[1]};
        return false;
    }
    membership->status = bytes[1] == 'l' ? LEFT : ACTIVE;
    read_instant(bytes + 2, membership);
    return true;
}

fan_out_t fan_out(const membership_t *membership) {
    return membership->status == ACTIVE ? COHORTS | COMMUNITIES : 0;
}
