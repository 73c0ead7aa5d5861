#pragma once
/* The data folder before a hub takes it over: what would keep the hub from starting is found while
 * the one before runs on. */
#include "base/err.h"

struct config;

/* What is missing is fine, since a hub makes it: of that, this makes the audit log's key and head
 * in its folder. socket: its path, or "none". */
int data_check(const struct config *c, const char *socket, struct err *e) MUST_USE;
