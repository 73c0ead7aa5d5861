#pragma once
/* Which addresses are this host's own, or a network's broadcast address: as the kernel would route
 * to them now, whatever their range. */
#include <stdbool.h>

#include "base/err.h"
#include "net/wire/addr.h"

/* A socket for own_has(), or -1. */
int own_open(struct err *e) MUST_USE;

/* True also if the kernel doesn't say. */
bool own_has(int own, const struct net_addr *a);
