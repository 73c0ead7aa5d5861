#pragma once
/* The words of `holt audit`. They read the log's files, and need no hub. */
#include "cli/common/verb.h"

/* Exit statuses of show and verify. */
enum { AUDIT_EXIT_MISMATCH = 1, AUDIT_EXIT_UNSEALED = 2, AUDIT_EXIT_NOT_FOUND = 3 };

/* Opens the log's folder. ERR_PATH_NOT_FOUND where there is none. */
int audit_dir(struct err *e) MUST_USE;

extern const struct verb audit_tail_verb, audit_show_verb, audit_verify_verb;
