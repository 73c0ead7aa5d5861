#pragma once
/* op/local.h for verbs that work by themselves, whose calls pass the gate. */
#include "cli/common/verb.h"
#include "op/local.h"

struct verb_call;

/* config: what --config said, or NULL. op and request: see local_begin(). */
struct verb_call *verb_call_begin(const struct cli *cli, const char *config, const struct op *op,
				  const void *request, struct err *e) MUST_USE;
/* The others of op/local.h likewise. */
struct exec_secret;
struct secret_refs;
int verb_call_grant(struct verb_call *r, const struct secret_refs *refs,
		    const struct exec_secret **ret, size_t *ret_n, struct err *e) MUST_USE;
struct str verb_call_redact(struct verb_call *r, struct str bytes);
void verb_call_end(struct verb_call *r, const struct err *err);
