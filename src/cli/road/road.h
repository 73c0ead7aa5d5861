#pragma once
/* op/local.h for verbs that work by themselves, with the gate on their road. */
#include "cli/common/verb.h"
#include "op/local.h"

struct road;

/* config: what --config said, or NULL. op and request: see local_begin(). */
struct road *road_begin(const struct cli *cli, const char *config, const struct op *op,
			const void *request, struct err *e) MUST_USE;
/* The others of op/local.h likewise. */
struct exec_secret;
struct secret_refs;
int road_grant(struct road *r, const struct secret_refs *refs, const struct exec_secret **ret,
	       size_t *ret_n, struct err *e) MUST_USE;
struct str road_redact(struct road *r, struct str bytes);
void road_end(struct road *r, const struct err *err);
