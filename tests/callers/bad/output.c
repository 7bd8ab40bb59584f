/* A caller that writes to its standard output without end. */

#include <stdio.h>

#include "caller.h"

bool exports_caller_run(caller_list_string_t *args, caller_string_t *ok, caller_string_t *err) {
    (void)args, (void)ok, (void)err;
    for (;;) {
        puts("and another line of this");
    }
}
