#pragma once
/* The data folder before a hub takes it over: what would keep the hub from starting is found while
 * the one before runs on. */
#include "base/err.h"

struct config;

/* Missing files are fine, since a hub makes them; the key and head of the audit log are made here.
 * socket: its path, or "none". */
int data_check(const struct config *c, const char *socket, struct err *e) MUST_USE;
