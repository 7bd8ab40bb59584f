/* A session with a community layer: a user signals, leaves, and comes back.

   Formatting is done by hand because `printf` and its kin would import WASI. The
   instance ends with `run`; nothing but what is not wanted on the way is freed. */

#include <stdlib.h>
#include <string.h>

#include "caller.h"

enum { ACTIVE = TYPES_MEMBERSHIP_STATUS_ACTIVE, LEFT = TYPES_MEMBERSHIP_STATUS_LEFT };

static void add_bytes(caller_string_t *text, const void *bytes, size_t length) {
    uint8_t *longer = realloc(text->ptr, text->len + length + 1);
    if (longer == NULL) {
        abort();
    }
    memcpy(longer + text->len, bytes, length);
    text->ptr = longer;
    text->len += length;
}

static void add(caller_string_t *text, const char *words) {
    add_bytes(text, words, strlen(words));
}

static void add_number(caller_string_t *text, uint32_t number) {
    char digits[10];
    size_t first = sizeof digits;
    do {
        digits[--first] = '0' + number % 10;
        number /= 10;
    } while (number != 0);
    add_bytes(text, digits + first, sizeof digits - first);
}

/* Each of the following appends to `out` or, where it returns false, to `err`. */

static bool fail(caller_string_t *err, const char *reason) {
    add(err, reason);
    return false;
}

static bool fail_with(caller_string_t *err, const layer_error_t *error) {
    const caller_string_t *text = NULL;
    switch (error->tag) {
    case LAYER_ERROR_NOT_DURABLE:
        add(err, "not-durable: ");
        text = &error->val.not_durable;
        break;
    case LAYER_ERROR_MALFORMED_RECORD:
        add(err, "malformed-record: ");
        text = &error->val.malformed_record;
        break;
    case LAYER_ERROR_INVALID_SIGNAL:
        add(err, "invalid-signal: ");
        text = &error->val.invalid_signal;
        break;
    case LAYER_ERROR_ACCESS_DENIED:
        add(err, "access-denied: ");
        text = &error->val.access_denied;
        break;
    case LAYER_ERROR_STORAGE:
        add(err, "storage: ");
        text = &error->val.storage;
        break;
    case LAYER_ERROR_COMPONENT:
        add(err, "component: ");
        text = &error->val.component;
        break;
    }
    add_bytes(err, text->ptr, text->len);
    return false;
}

static const char *word(types_membership_status_t status) {
    return status == LEFT ? "left" : "active";
}

static bool same_instant(const types_option_timestamp_ns_t *a,
                         const types_option_timestamp_ns_t *b) {
    return a->is_some == b->is_some && (!a->is_some || a->val == b->val);
}

static bool signal_line(uint64_t user, caller_string_t *out, caller_string_t *err) {
    layer_engagement_signal_t like = {.item_id = 7, .weight = 1.5};
    layer_receipt_t receipt;
    layer_error_t error;
    caller_string_set(&like.kind, "like");
    if (!layer_signal(user, &like, &receipt, &error)) {
        return fail_with(err, &error);
    }
    add(out, "signal: cohorts ");
    add_number(out, receipt.cohorts);
    add(out, ", communities ");
    add_number(out, receipt.communities);
    add(out, receipt.gated ? ", gated yes\n" : ", gated no\n");
    return true;
}

static bool status_line(uint64_t user, types_community_membership_t *membership,
                        caller_string_t *out, caller_string_t *err) {
    layer_error_t error;
    if (!layer_status(user, membership, &error)) {
        return fail_with(err, &error);
    }
    if (membership->status == LEFT) {
        add(out, "status: left\n");
    } else if (membership->left_at_ns.is_some) {
        add(out, "status: active, has left before\n");
    } else {
        add(out, "status: active, never left\n");
    }
    return true;
}

static bool leave_line(uint64_t user, types_community_membership_t *left,
                       caller_string_t *out, caller_string_t *err) {
    layer_error_t error;
    if (!layer_leave(user, left, &error)) {
        return fail_with(err, &error);
    }
    if (!left->left_at_ns.is_some) {
        return fail(err, "the leave has no instant");
    }
    add(out, "leave: ");
    add(out, word(left->status));
    add(out, "\n");
    return true;
}

static bool rejoin_line(uint64_t user, types_community_membership_t *back,
                        caller_string_t *out, caller_string_t *err) {
    layer_error_t error;
    if (!layer_rejoin(user, back, &error)) {
        return fail_with(err, &error);
    }
    add(out, "rejoin: ");
    add(out, word(back->status));
    add(out, "\n");
    return true;
}

static bool history_line(uint64_t user, types_option_timestamp_ns_t *last_leave,
                         caller_string_t *out, caller_string_t *err) {
    layer_list_transition_t history;
    layer_error_t error;
    if (!layer_history(user, &history, &error)) {
        return fail_with(err, &error);
    }
    last_leave->is_some = false;
    add(out, "history: ");
    for (size_t i = 0; i < history.len; i++) {
        if (history.ptr[i].to == LEFT) {
            *last_leave = (types_option_timestamp_ns_t){true, history.ptr[i].at_ns};
        }
        add(out, i == 0 ? "" : ", ");
        add(out, word(history.ptr[i].to));
    }
    layer_list_transition_free(&history);
    return true;
}

static bool session(uint64_t user, caller_string_t *out, caller_string_t *err) {
    types_community_membership_t before, left, membership, back;
    types_option_timestamp_ns_t last_leave;

    if (!signal_line(user, out, err) || !status_line(user, &before, out, err) ||
        !leave_line(user, &left, out, err) || !signal_line(user, out, err) ||
        !status_line(user, &membership, out, err)) {
        return false;
    }
    if (!same_instant(&membership.left_at_ns, &left.left_at_ns)) {
        return fail(err, "status has another instant than the leave");
    }
    if (!rejoin_line(user, &back, out, err)) {
        return false;
    }
    if (!same_instant(&back.left_at_ns, &left.left_at_ns)) {
        return fail(err, "rejoin has another instant than the leave");
    }
    if (!signal_line(user, out, err) || !history_line(user, &last_leave, out, err)) {
        return false;
    }
    if (!same_instant(&last_leave, &left.left_at_ns)) {
        return fail(err, "history has another instant than the leave");
    }
    return true;
}

/* Decimal digits and nothing else, up to 2^64 - 1. */
static bool read_user_id(const caller_string_t *text, uint64_t *user) {
    *user = 0;
    for (size_t i = 0; i < text->len; i++) {
        uint8_t digit = text->ptr[i] - '0';
        if (digit > 9 || *user > (UINT64_MAX - digit) / 10) {
            return false;
        }
        *user = *user * 10 + digit;
    }
    return text->len != 0;
}

bool exports_caller_run(caller_list_string_t *args, caller_string_t *ret, caller_string_t *err) {
    uint64_t user;

    *ret = *err = (caller_string_t){NULL, 0};
    if (args->len != 1) {
        add(err, "1 user id expected, ");
        add_number(err, args->len);
        return fail(err, " found");
    }
    if (!read_user_id(&args->ptr[0], &user)) {
        add(err, "not a user id: \"");
        add_bytes(err, args->ptr[0].ptr, args->ptr[0].len);
        return fail(err, "\"");
    }
    return session(user, ret, err);
}
