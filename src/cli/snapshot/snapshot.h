#pragma once
/* What the words of `holt snapshot` share. */
#include "cli/link/link.h"
#include "cli/common/verb.h"

/* Builds "/v1/snapshots/ID" and `more`. ERR_SNAPSHOT_NOT_FOUND if the id is no valid one. */
int snapshot_path(char *ret, size_t size, const char *id, const char *more, struct err *e) MUST_USE;
