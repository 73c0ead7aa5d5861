#pragma once
/*
 * Secrets by reference. A request names secrets of the operator's for one program: by the variable
 * that the program gets, which has the value, or the name of a file with it. They are read once the
 * call may run, and given to the program alone; from then on they are redacted. Nothing answers
 * with a value: there is secret.set, secret.list and secret.remove.
 */
#include "call/call.h"
#include "hub/sandbox/bound.h"

enum { SECRET_REFS_MAX = 32, SECRET_VARIABLE_MAX = 128 };

struct secret_ref {
	struct str name; /* of the variable */
	struct str ref; /* the secret */
	bool file;
	bool begin; /* a log-in */
};
struct secret_refs {
	const struct secret_ref *p;
	size_t n;
};
extern const struct field_table secret_ref_table;
extern const struct field_table secret_bound_table; /* for new sandboxes */

/* The row of a request's struct secret_refs secrets. */
#define SECRETS_ROW(Q)                                                                             \
	FIELD_DICT(Q, secrets, secret_ref_table, .max = SECRET_REFS_MAX, .item_min = 1,            \
		   .item_max = SECRET_VARIABLE_MAX,                                                \
		   .doc = "Secrets of the operator for this program alone, by the environment "    \
			  "variable that gets each.")

/* Brings them into their order. ERR_INVALID: one has no fit name, or is a variable of env, too. */
int secret_refs_normalize(struct secret_refs *refs, const struct field_map *env, struct arena *a,
			  struct err *e) MUST_USE;

/* Whether the operator's file lists the secret for a principal, as network_listed() has hosts. f:
 * may be NULL. */
struct config_file;
bool secret_listed(const struct config_file *f, struct str who, struct str name);

/* Whether there are such secrets and the caller may have them. */
int secret_check(struct call *c, const struct secret_refs *refs, struct err *e) MUST_USE;

/* The row of a request's struct secret_refs secrets for a new sandbox. */
#define BOUND_SECRETS_ROW(Q)                                                                       \
	FIELD_DICT(Q, secrets, secret_bound_table, .max = BOUND_MAX, .item_min = 1,                \
		   .item_max = SECRET_VARIABLE_MAX,                                                \
		   .doc = "Secrets with hosts, by environment variable. The variable gets a "      \
			  "placeholder, which is replaced by the value in headers of HTTPS "       \
			  "requests to these hosts.")

/* Whether the call may bind these to a sandbox with that network (network_text()). *ret: in the
 * call's arena. */
int secret_bind(struct call *c, const struct secret_refs *refs, struct str network,
		struct bound_spec *ret, struct err *e) MUST_USE;

/* Reads them for the call, then calls on_granted, whose secrets are borrowed until it returns; or
 * with err, none. on_granted may come before this returns. */
typedef void (*secret_granted_fn)(void *data, const struct exec_secret *secrets, size_t n,
				  const struct err *err);
void secret_grant(struct call *c, const struct secret_refs *refs, secret_granted_fn on_granted,
		  void *data);

/* ---- what there is ------------------------------------------------------------------------- */

struct secret_view {
	struct str secret, provider, changed_at;
};
/* Rows of a table of it, by the name that a door has for its id. */
#define SECRET_ROWS(name_)                                                                         \
	FIELD_NAMED(struct secret_view, secret, name_, .flags = FIELD_REQUIRED,                    \
		    .doc = "Name of the secret, for requests."),                                   \
		FIELD(struct secret_view, provider, .flags = FIELD_REQUIRED,                       \
		      .doc = "Where its value is: store, env, file or command."),                  \
		FIELD(struct secret_view, changed_at,                                              \
		      .doc = "When it was stored, RFC 3339; absent: it is not in the store.")

struct secrets_view {
	struct {
		const struct secret_view *p;
		size_t n;
	} secrets;
};

struct secret_removed {
	struct str secret, status; /* "removed" */
};
