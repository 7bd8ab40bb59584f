/* What membership.c promises beyond the contract: it takes no number that does not
 * fit, and a call that failed spoils no later one. Exits if a promise is broken. */
#ifndef TIDEGATE_CHECK_MODULE_H
#define TIDEGATE_CHECK_MODULE_H

#include "membership.h"

void check_module(rules *rules);

#endif
