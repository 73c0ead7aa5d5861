#pragma once
/*
 * What clients of mitos want besides, with --compat mitos (docs/compat.md). Their templates are
 * names of Holt's, as the operator's file has them. What such a client says when it makes one,
 * about what its sandboxes may reach, use and run, is kept in memory, and said for each sandbox
 * that it makes of that name.
 */
#include "config/config.h"
#include "door/http/exchange.h"

/* tokenless: for mitos_identify(); NULL: it knows nobody. Nor does it at *agents_port, where
 * programs in sandboxes find the hub. */
struct mitos *mitos_new(struct config *c, struct ops *tokenless, const int *agents_port,
			struct err *e) MUST_USE;
/* The operator's file was read again. */
void mitos_configure(struct mitos *m, struct config *c);
void mitos_free(struct mitos *m); /* NULL-safe */

/* Drops all that is kept of this owner. */
void mitos_end_of(struct mitos *m, struct str owner);

/* A request without a token from this machine, of no page, to a procedure of a sandbox that it
 * names: the sandbox's owner. Else NULL. */
const void *mitos_identify(const struct mitos *m, struct http_request *q);

/* api_route.mend: requests for new sandboxes, and for copies of one. */
int mitos_mend_create(struct mitos *m, const struct principal *who, const struct json_val *body,
		      struct json_writer *w, struct err *e) MUST_USE;
int mitos_mend_fork(struct mitos *m, const struct principal *who, const struct json_val *body,
		    struct json_writer *w, struct err *e) MUST_USE;

/* api_route.show: a struct sandbox_view, one that was made, in which the workload of its template
 * is then started, and several; with the template as it was asked for. */
const void *mitos_show_made(struct call *c, const void *result, const struct field_table **t,
			    struct err *e);
const void *mitos_show_one(struct call *c, const void *result, const struct field_table **t,
			   struct err *e);
const void *mitos_show_several(struct call *c, const void *result, const struct field_table **t,
			       struct err *e);

/* ---- templates (mitos_templates.c) ----------------------------------------------------------- */

/* The template of Holt; the name itself where it has no other. */
struct str mitos_template(const struct mitos *m, struct str name);
/* Whether it is the template of that name, which may be without the tag. */
bool mitos_is_template(struct str id, struct str name);
/* The names of the operator's file, and that which holds unless it has another template there. */
const struct field_map *mitos_aliases(const struct mitos *m);
extern const struct field_pair mitos_alias_default;
/* When the hub began. */
struct str mitos_began(const struct mitos *m);

/* A client's settings for a template: JSON texts, empty where none were given. */
struct mitos_said {
	struct buf network, limits, workload;
};
/* Instead of what this owner said before; ERR_LIMIT. */
int mitos_keep(struct mitos *m, struct str owner, struct str id, const struct mitos_said *said,
	       struct err *e) MUST_USE;

/* ---- workloads (mitos_workload.c) ------------------------------------------------------------ */

struct mitos_workload {
	struct field_strs command;
	struct field_map env;
};
extern const struct field_table mitos_workload_table;
/* Starts it in a new sandbox; it goes on when the call has ended. */
void mitos_workload_start(struct call *c, const char *text, struct str sandbox);
