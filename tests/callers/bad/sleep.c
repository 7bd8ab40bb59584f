/* A caller that goes to sleep for a day: it waits in its host, not in its own code. */

#include <unistd.h>

#include "caller.h"

bool exports_caller_run(caller_list_string_t *args, caller_string_t *ok, caller_string_t *err) {
    (void)args, (void)err;
    sleep(24 * 60 * 60);
    caller_string_set(ok, "");
    return true;
}
