#pragma once
/*
 * What a sandbox has of secrets that are bound to hosts: placeholders in its environment, and an
 * authority of its own that its programs trust, by which the egress proxy ends their TLS. One whose
 * grants have HTTP rules has the authority alone. The values are no part of it. Forks share it with
 * their source, since they have its memory and its mounts; what is restored from a snapshot has
 * none of it.
 *
 * The authority's files are in a folder of the hub, of which only those with certificates are shown
 * inside. Where the hub has a registry, the key is there too (0600), since a sandbox may outlive
 * the hub. The folder ends with the last sandbox that needs it.
 */
#include "base/id.h"
#include "base/secret.h"
#include "box/host/box.h"
#include "json/document/write.h"

enum { BOUND_MAX = 16, BOUND_MOUNTS = 2, BOUND_VARIABLES = 16, BOUND_PLACEHOLDER = 45 };

/* A secret that is asked for: a variable of the sandbox gets a placeholder of it. None: who asks
 * places it. */
struct bound_ref {
	struct str variable, secret;
	bool begins; /* a log-in, whose tokens may be new ones */
};

struct bound_secret {
	struct str variable, secret, placeholder;
	bool begins;
};

struct bound {
	unsigned refs;
	char id[ID_MAX];
	struct str who; /* name of the principal that may use them */
	bool by_operator;
	struct secret *key; /* of the authority, in PEM; NULL: it was lost */
	char *ca; /* its certificate, in PEM */
	char *folder; /* absolute path */
	char *pem, *p12; /* paths below it */
	size_t n;
	struct bound_secret p[];
};

struct bound_spec {
	const struct bound_ref *p;
	size_t n; /* 0 to BOUND_MAX */
	struct str who;
	bool by_operator;
};

/* A new placeholder. */
void bound_placeholder(char ret[BOUND_PLACEHOLDER]);

/* folder: where it makes its own. keep: its key stays there for another hub. more: certificates
 * (PEM) that are trusted beside the host's and its own. */
struct bound *bound_new(const char *folder, bool keep, const struct bound_spec *s, struct str more,
			struct err *e) MUST_USE;
struct bound *bound_ref(struct bound *b); /* NULL-safe */
void bound_unref(struct bound *b); /* NULL-safe; leaves the folder alone */
AUTO_DEFINE(bound_unref, struct bound)
/* The same for a sandbox that has ended: the last one's folder is removed. */
void bound_end(struct bound *b);
AUTO_DEFINE(bound_end, struct bound)

/* Appends a variable, where there is none of that name. */
void env_add(struct str name, struct str value, struct env_var *env, size_t *n);
/* For the engine: appends to a sandbox's variables at *n, without replacing any, and to its mounts.
 * b may be NULL. The texts are borrowed from b. */
void bound_env(const struct bound *b, struct env_var *env, size_t *n);
void bound_mounts(const struct bound *b, struct sandbox_mount *mounts, size_t *n);

/* The member "secrets" of a sandbox's row; nothing where b is NULL. */
void bound_write(const struct bound *b, struct json_writer *w);
/* From the text of such a row: *ret NULL where there is none. find gives one that another sandbox
 * has read, of this id, or NULL. bound_open() must follow. */
int bound_read(struct str row, struct bound *(*find)(void *arg, struct str id), void *arg,
	       struct bound **ret, struct err *e) MUST_USE;
/* Finds its files. Idempotent. If they are gone, its sandboxes have no secrets any more. */
int bound_open(struct bound *b, const char *folder, struct err *e) MUST_USE;

/* Removes what no sandbox of the registry needs. needed is asked for each id. */
void bound_sweep(const char *folder, bool (*needed)(void *arg, struct str id), void *arg);
