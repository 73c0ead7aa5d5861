#pragma once
/* Between the files of approvals. */
#include "ask/approval.h"

/* ---- match.c: what a grant's pattern lets go ------------------------------------------------ */

/* Whether redaction, or the client, has put a mark there. */
bool approval_has_mark(struct str arguments);
/* ERR_INVALID unless it is an object of JSON pointers and texts, each naming a value of the
 * arguments. */
int approval_pattern_check(struct str pattern, struct str arguments, struct err *e) MUST_USE;
/* Whether the arguments are those that were approved but for what the pattern frees. */
bool approval_pattern_fits(struct str pattern, struct str approved, struct str arguments);
