#pragma once
/* Shared by the files of guard/secret. */
#include "base/buf.h"
#include "guard/secret/secrets.h"

struct source {
	char name[SECRETS_NAME_MAX + 1];
	enum secrets_provider provider;
	char *from; /* owned, like all of argv */
	char **argv; /* ends with NULL */
};

struct secrets {
	int folder; /* of the data; -1: there is none */
	struct source *sources; /* by name */
	size_t n_sources;
};

/* NULL: the name has no entry. */
const struct source *source_find(const struct secrets *s, struct str name);

/* Bytes of a provider, with room for one too many. */
#define VALUE_BUF BUF_INIT(SECRETS_MAX + 1)

/* A value of the named secret, which must be fit for one; else NULL. */
struct secret *secret_of(struct str name, struct str value, struct err *e) MUST_USE;

/* Reads a whole regular file that belongs to this user or root and that nobody else may read. at:
 * a folder, or AT_FDCWD. The message names no path. */
int private_read(int at, const char *path, struct buf *to, struct err *e) MUST_USE;

int secrets_unknown(struct str name, struct err *e);

/* Calls each with the name of every stored secret. */
int store_list(const struct secrets *s,
	       int (*each)(void *data, const char *name, int64_t changed_ms), void *data,
	       struct err *e) MUST_USE;
