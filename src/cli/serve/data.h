#pragma once
/* The data folder before a hub takes it over: what would keep the hub from starting is found while
 * the one before runs on. */
#include "base/err.h"

/* Changes nothing. What is missing is fine, since a hub makes it. socket: its path, or "none". */
int data_check(const char *socket, struct err *e) MUST_USE;
