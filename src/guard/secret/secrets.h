#pragma once
/*
 * The operator's secrets, by name. A secret comes from where the operator's file says: a variable
 * of the hub's environment, a file, what a command prints, or the sealed store in the data folder.
 * A name that the file does not have is looked up in the store. No function gives a value to
 * anybody but secrets_read_start(), secrets_stored() and secrets_known(), and no door shows one.
 *
 * The store is a folder with a file for each secret: text sealed with the key beside the folder and
 * bound to its name (base/seal.h), so that nobody can exchange two of them. `holt run` reads it
 * beside a running hub. A set or removed secret has reached the disk when the call returns.
 *
 * A value has SECRETS_LEAST to SECRETS_MAX bytes and no NUL. A shorter one would stand in other
 * text by chance, so it could not be redacted.
 */
#include <stdint.h>
#include <uv.h>

#include "base/secret.h"

struct secrets;

enum {
	SECRETS_NAME_MAX = 64, /* bytes: A-Z a-z 0-9 . _ - with a letter or digit first */
	SECRETS_LEAST = 8,
	SECRETS_MAX = 32 << 10,
	SECRETS_STORED_MAX = 1000,
	SECRETS_READ_MAX = 32, /* in one read */
	SECRETS_COMMAND_MS = 10000, /* then the command is killed */
	SECRETS_ARGV_MAX = 64,
};

enum secrets_provider {
	SECRETS_STORE,
	SECRETS_ENV,
	SECRETS_FILE,
	SECRETS_COMMAND,
	SECRETS_PROVIDERS
};
extern const char *const secrets_provider_names[SECRETS_PROVIDERS]; /* "store", "env", … */

/* One entry of the operator's file. */
struct secrets_source {
	struct str name;
	enum secrets_provider provider;
	struct str from; /* the variable; or the absolute path of the file */
	const struct str *argv; /* the command; its program is searched in PATH */
	size_t n_argv;
};

/* folder: the data folder. NULL, or it does not exist: there is no store. */
struct secrets *secrets_open(const char *folder, struct err *e) MUST_USE;
/* No read is under way. NULL-safe. */
void secrets_free(struct secrets *s);
AUTO_DEFINE(secrets_free, struct secrets)

/* Replaces the entries, which are copied. ERR_INVALID, and nothing is changed. */
int secrets_configure(struct secrets *s, const struct secrets_source *sources, size_t n,
		      struct err *e) MUST_USE;

int secrets_check_name(struct str name, struct err *e) MUST_USE;
/* The value as an environment variable has it, and as it is redacted: without newlines at its
 * end. */
struct str secrets_text(struct str value);

/* ---- the store ----------------------------------------------------------------------------- */

/* ERR_CONFLICT: the operator's file says that it comes from elsewhere. ERR_LIMIT: too many. */
int secrets_set(struct secrets *s, struct str name, struct str value, struct err *e) MUST_USE;
/* ERR_SECRET_NOT_FOUND. */
int secrets_remove(struct secrets *s, struct str name, struct err *e) MUST_USE;

/* What the store has, at once. ERR_SECRET_NOT_FOUND. */
struct secret *secrets_stored(const struct secrets *s, struct str name, struct err *e) MUST_USE;

/* ---- all of them --------------------------------------------------------------------------- */

struct secrets_entry {
	struct str name;
	enum secrets_provider provider;
	int64_t changed_ms; /* of the store: Unix time; else 0 */
};
/* In order of their names. ret_p: owned with its names, one free(). */
int secrets_list(const struct secrets *s, struct secrets_entry **ret_p, size_t *ret_n,
		 struct err *e) MUST_USE;

/* Calls each with every value that can be had at once: of the environment, files and the store.
 * What can't be read is logged by its name. */
void secrets_known(const struct secrets *s,
		   void (*each)(void *data, struct str name, struct str value), void *data);

/* ---- reading ------------------------------------------------------------------------------- */

struct secrets_read;

/* values: of the names in their order, borrowed until the callback returns; NULL with err. */
typedef void (*secrets_on_read)(void *data, struct secret *const *values, const struct err *err);

/* Reads them one after the other; on_read comes later from the loop, once. Errors:
 * ERR_SECRET_NOT_FOUND, ERR_DENIED (a file that others may read), ERR_INVALID (an unfit value),
 * ERR_IO, ERR_TIMEOUT. NULL: it can't begin. */
struct secrets_read *secrets_read_start(const struct secrets *s, uv_loop_t *loop,
					const struct str *names, size_t n, secrets_on_read on_read,
					void *data, struct err *e) MUST_USE;
/* on_read is not called any more. A command is killed. */
void secrets_read_cancel(struct secrets_read *r);
