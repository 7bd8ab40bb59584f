/* The interface `membership`, but for what policy.h leaves to a policy. */

#include <stdlib.h>
#include <string.h>

#include "policy.h"

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (memory == NULL && count != 0) {
        abort();
    }
    return memory;
}

/* Where 0 is none. */
static uint64_t instant(const membership_t *membership) {
    return membership->left_at_ns.is_some ? membership->left_at_ns.val : 0;
}

static void set_instant(membership_t *membership, uint64_t instant) {
    membership->left_at_ns.is_some = instant != 0;
    membership->left_at_ns.val = instant;
}

void write_instant(uint8_t *bytes, const membership_t *membership) {
    for (int i = 0; i < 8; i++) {
        bytes[i] = instant(membership) >> 8 * i;
    }
}

void read_instant(const uint8_t *bytes, membership_t *membership) {
    uint64_t read = 0;
    for (int i = 0; i < 8; i++) {
        read |= (uint64_t)bytes[i] << 8 * i;
    }
    set_instant(membership, read);
}

void exports_membership_leave(membership_t *current, uint64_t now, membership_t *left) {
    uint64_t before = instant(current);
    left->user_id = current->user_id;
    left->status = LEFT;
    set_instant(left, now > before ? now : before);
}

void exports_membership_rejoin(membership_t *current, membership_t *back) {
    back->user_id = current->user_id;
    back->status = ACTIVE;
    set_instant(back, instant(current));
}

/* Without printf, which would import WASI. */
static void set_reason(membership_component_string_t *reason, const malformed_t *malformed) {
    char text[64], number[16];
    char *digit = number + sizeof number - 1;
    size_t rest = malformed->found;
    *digit = 0;
    do {
        *--digit = '0' + rest % 10;
        rest /= 10;
    } while (rest != 0);
    strcpy(text, malformed->expected);
    strcat(text, " expected, ");
    strcat(text, digit);
    strcat(text, " found");
    membership_component_string_dup(reason, text);
}

bool exports_membership_status(uint64_t user, membership_component_list_u8_t *stored,
                               membership_t *membership,
                               exports_membership_malformed_record_t *error) {
    malformed_t malformed;
    bool is_record = true;
    *membership = (membership_t){.user_id = user, .status = ACTIVE};
    if (stored != NULL) {
        is_record = read_record(stored->ptr, stored->len, membership, &malformed);
        membership_component_list_u8_free(stored);
    }
    if (!is_record) {
        set_reason(&error->reason, &malformed);
    }
    return is_record;
}

fan_out_t exports_membership_signal(membership_t *current) {
    return fan_out(current);
}

void exports_membership_serialize_membership(membership_t *membership,
                                             membership_component_list_u8_t *record) {
    record->ptr = allocate(record_length, 1);
    record->len = record_length;
    write_record(record->ptr, membership);
}

bool exports_membership_deserialize_membership(uint64_t user,
                                               membership_component_list_u8_t *bytes,
                                               membership_t *membership) {
    malformed_t malformed;
    membership->user_id = user;
    bool is_record = read_record(bytes->ptr, bytes->len, membership, &malformed);
    membership_component_list_u8_free(bytes);
    return is_record;
}

void exports_membership_restore(exports_membership_list_user_id_t *users,
                                membership_component_list_u32_t *lengths,
                                membership_component_list_u8_t *bytes,
                                exports_membership_list_option_restored_membership_t *restored) {
    malformed_t malformed;
    size_t at = 0;
    restored->len = users->len;
    restored->ptr = allocate(users->len, sizeof *restored->ptr);
    for (size_t i = 0; i < users->len && i < lengths->len; i++) {
        size_t length = lengths->ptr[i];
        /* Once one record is cut short, where the next begins is not known. */
        if (length > bytes->len - at) {
            break;
        }
        membership_t *membership = &restored->ptr[i].val.membership;
        membership->user_id = users->ptr[i];
        if (read_record(bytes->ptr + at, length, membership, &malformed)) {
            restored->ptr[i].is_some = true;
            restored->ptr[i].val.fan_out = fan_out(membership);
        }
        at += length;
    }
    exports_membership_list_user_id_free(users);
    membership_component_list_u32_free(lengths);
    membership_component_list_u8_free(bytes);
}
