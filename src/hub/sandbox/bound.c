/*
 * Secrets bound to hosts, which never enter the sandbox. The hub makes placeholders and a
 * certificate authority for the sandbox (base/authority.h), and mounts the certificates inside
 * (trust.c). It fetches the values (struct hub_secrets) before it serves the network of a new
 * sandbox, after the hub has started, and when secrets or the configuration change. hub/net keeps
 * them as one message in locked memory and hands it to the proxy with the grants.
 */
#include "hub/sandbox/bound.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/authority.h"
#include "base/fd.h"
#include "base/folder.h"
#include "base/log.h"
#include "hub/sandbox/trust.h"
#include "json/field/field.h"
#include "net/wire/wire.h"

enum { ROW_MAX = 1 << 20 };

static_assert((int)BOUND_MAX == (int)NW_SECRETS_MAX, "the proxy takes as many");
static_assert((int)BOUND_PLACEHOLDER < (int)NW_PLACEHOLDER_MAX, "the proxy takes it");

/* Another name than the certificates have that it signs: else they look like signed by
 * themselves. */
static const char authority[] = "Holt, for one sandbox";

static const char key_file[] = "key", ca_file[] = "ca", pem_file[] = "pem", p12_file[] = "p12";
static const char *const files[] = { key_file, ca_file, pem_file, p12_file };

/* ---- memory -------------------------------------------------------------------------------- */

/* Copies of all texts, behind the struct. */
static struct bound *bound_copy(const struct bound_secret *p, size_t n, struct str who,
				struct err *e)
{
	size_t bytes = who.n;
	struct bound *b;
	char *at;

	for (size_t i = 0; i < n; i++)
		bytes += p[i].variable.n + p[i].secret.n + p[i].placeholder.n;
	b = calloc(1, sizeof(*b) + n * sizeof(b->p[0]) + bytes);
	if (!b)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	b->refs = 1;
	b->n = n;
	at = (char *)(b->p + n);
	b->who = str_put(&at, who);
	for (size_t i = 0; i < n; i++)
		b->p[i] = (struct bound_secret){ str_put(&at, p[i].variable),
						 str_put(&at, p[i].secret),
						 str_put(&at, p[i].placeholder), p[i].begins };
	return b;
}

struct bound *bound_ref(struct bound *b)
{
	if (b)
		b->refs++;
	return b;
}

void bound_unref(struct bound *b)
{
	if (!b || --b->refs > 0)
		return;
	secret_free(b->key);
	free(b->ca);
	free(b->folder);
	free(b->pem);
	free(b->p12);
	free(b);
}

/* ---- files --------------------------------------------------------------------------------- */

static void remove_folder(const char *folder)
{
	autoclose int dir = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	for (size_t i = 0; dir >= 0 && i < ARRAY_LEN(files); i++)
		unlinkat(dir, files[i], 0);
	if (rmdir(folder) < 0 && errno != ENOENT)
		log_warn("a folder of certificates stays: %s", strerror(errno));
}

void bound_end(struct bound *b)
{
	if (b && b->refs == 1 && b->folder)
		remove_folder(b->folder);
	bound_unref(b);
}

/* Those of a hub without a registry end with it, so that another hub must not look for them. */
static const char *place_of(bool keep)
{
	return keep ? "trust" : "trust.run";
}

static int bound_place(struct bound *b, const char *folder, bool keep, struct err *e)
{
	if (asprintf(&b->folder, "%s/%s/%s", folder, place_of(keep), b->id) < 0)
		b->folder = NULL;
	if (!b->folder || asprintf(&b->pem, "%s/%s", b->folder, pem_file) < 0)
		b->pem = NULL;
	if (!b->pem || asprintf(&b->p12, "%s/%s", b->folder, p12_file) < 0)
		b->p12 = NULL;
	return b->p12 ? 0 : err_set(e, ERR_LIMIT, "out of memory");
}

static int write_file(int dir, const char *name, mode_t mode, struct str text, struct err *e)
{
	autoclose int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	if (fd < 0 || fchmod(fd, mode) < 0 || fd_write(fd, text.p, text.n) < 0)
		return err_sys(e, errno, "write a sandbox's certificates");
	return 0;
}

static int write_files(const struct bound *b, int dir, bool keep, struct str more, struct err *e)
{
	autobuf struct buf pem = BUF_INIT(TRUST_MAX), p12 = BUF_INIT(TRUST_MAX);

	if (trust_pem(str_of(b->ca), &pem, e) < 0 || buf_add(&pem, more.p, more.n, e) < 0 ||
	    trust_p12(buf_str(&pem), &p12, e) < 0 ||
	    write_file(dir, pem_file, 0444, buf_str(&pem), e) < 0 ||
	    write_file(dir, p12_file, 0444, buf_str(&p12), e) < 0)
		return -1;
	if (!keep)
		return 0;
	return write_file(dir, ca_file, 0600, str_of(b->ca), e) < 0
		     ? -1
		     : write_file(dir, key_file, 0600, secret_expose(b->key, "kept in its file"),
				  e);
}

static int make_folder(const struct bound *b, const char *folder, bool keep, struct str more,
		       struct err *e)
{
	autoclose int above = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autoclose int all = -1, dir = -1;

	if (above >= 0 && (mkdirat(above, place_of(keep), 0700) == 0 || errno == EEXIST))
		all = openat(above, place_of(keep),
			     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (all < 0 || mkdirat(all, b->id, 0700) < 0)
		return err_sys(e, errno, "make a folder for a sandbox's certificates");
	dir = openat(all, b->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir >= 0 && write_files(b, dir, keep, more, e) == 0)
		return 0;
	if (dir < 0)
		err_sys(e, errno, "open a folder for a sandbox's certificates");
	remove_folder(b->folder);
	return -1;
}

/* ---- a new one ----------------------------------------------------------------------------- */

void bound_placeholder(char ret[BOUND_PLACEHOLDER])
{
	char random[ID_MAX];

	id_make(random, "x");
	snprintf(ret, BOUND_PLACEHOLDER, NW_PLACEHOLDER "%.32s", random + strlen("x-"));
}

struct bound *bound_new(const char *folder, bool keep, const struct bound_spec *s, struct str more,
			struct err *e)
{
	struct bound_secret p[BOUND_MAX];
	char placeholders[BOUND_MAX][BOUND_PLACEHOLDER];
	AUTO(bound_unref) struct bound *b = NULL;
	autobuf struct buf ca = BUF_INIT(AUTHORITY_PEM_MAX);

	if (s->n > BOUND_MAX)
		return err_set(e, ERR_INVALID, "secrets: at most %d of a sandbox", BOUND_MAX), NULL;
	for (size_t i = 0; i < s->n; i++) {
		bound_placeholder(placeholders[i]);
		p[i] = (struct bound_secret){ s->p[i].variable, s->p[i].secret,
					      str_of(placeholders[i]), s->p[i].begins };
	}
	b = bound_copy(p, s->n, s->who, e);
	if (!b)
		return NULL;
	b->by_operator = s->by_operator;
	id_make(b->id, "ca");
	if (bound_place(b, folder, keep, e) < 0 || authority_make(authority, &b->key, &ca, e) < 0 ||
	    buf_add(&ca, "", 1, e) < 0)
		return NULL;
	b->ca = buf_take(&ca);
	return make_folder(b, folder, keep, more, e) < 0 ? NULL : take_ptr(b);
}

/* ---- for the engine ------------------------------------------------------------------------ */

/* By which programs find their trusted certificates, if they don't use the system's list. */
static const struct {
	const char *name, *value;
} variables[] = {
	{ "SSL_CERT_FILE", TRUST_PEM }, /* OpenSSL, Go, rustls */
	{ "CURL_CA_BUNDLE", TRUST_PEM },
	{ "REQUESTS_CA_BUNDLE", TRUST_PEM }, /* which has a list of its own, as have these: */
	{ "PIP_CERT", TRUST_PEM },
	{ "NODE_EXTRA_CA_CERTS", TRUST_PEM },
	{ "DENO_CERT", TRUST_PEM },
	{ "AWS_CA_BUNDLE", TRUST_PEM },
	{ "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", TRUST_PEM },
	{ "GIT_SSL_CAINFO", TRUST_PEM },
	{ "CARGO_HTTP_CAINFO", TRUST_PEM },
	{ "JAVA_TOOL_OPTIONS", "-Djavax.net.ssl.trustStore=" TRUST_P12 },
};
static_assert(ARRAY_LEN(variables) <= BOUND_VARIABLES, "callers have room");

void env_add(struct str name, struct str value, struct env_var *env, size_t *n)
{
	for (size_t i = 0; i < *n; i++) {
		if (str_eq(env[i].name, name))
			return;
	}
	env[(*n)++] = (struct env_var){ name, value };
}

void bound_env(const struct bound *b, struct env_var *env, size_t *n)
{
	for (size_t i = 0; b && i < b->n; i++) {
		if (b->p[i].variable.n)
			env_add(b->p[i].variable, b->p[i].placeholder, env, n);
	}
	for (size_t i = 0; b && i < ARRAY_LEN(variables); i++)
		env_add(str_of(variables[i].name), str_of(variables[i].value), env, n);
}

void bound_mounts(const struct bound *b, struct sandbox_mount *mounts, size_t *n)
{
	if (!b)
		return;
	mounts[(*n)++] = (struct sandbox_mount){ .host = str_of(b->pem),
						 .guest = STR_LIT(TRUST_PEM),
						 .own = true };
	mounts[(*n)++] = (struct sandbox_mount){ .host = str_of(b->p12),
						 .guest = STR_LIT(TRUST_P12),
						 .own = true };
}

/* ---- the row ------------------------------------------------------------------------------- */

struct row_bound {
	struct str id, who;
	bool by_operator;
	struct {
		const struct bound_secret *p;
		size_t n;
	} placeholders;
};
static const struct field secret_fields[] = {
	FIELD(struct bound_secret, variable, .flags = FIELD_REQUIRED, .doc = "Which has it."),
	FIELD(struct bound_secret, secret, .flags = FIELD_REQUIRED, .doc = "Its name."),
	FIELD(struct bound_secret, placeholder, .flags = FIELD_REQUIRED,
	      .max = BOUND_PLACEHOLDER - 1, .doc = "What the variable has."),
};
static const struct field_table secret_table = FIELD_TABLE(struct bound_secret, secret_fields);
static const struct field bound_fields[] = {
	FIELD(struct row_bound, id, .flags = FIELD_REQUIRED, .max = ID_MAX - 1,
	      .doc = "Name of the folder."),
	FIELD(struct row_bound, who, .flags = FIELD_REQUIRED, .doc = "Whose they are."),
	FIELD(struct row_bound, by_operator, .doc = "An operator has bound them."),
	FIELD_OBJECTS(struct row_bound, placeholders, secret_table, .flags = FIELD_REQUIRED,
		      .max = BOUND_MAX, .doc = "All of it."),
};
static const struct field_table bound_table = FIELD_TABLE(struct row_bound, bound_fields);

struct row {
	bool has_secrets;
	struct row_bound secrets;
};
static const struct field row_fields[] = {
	FIELD_OBJECT(struct row, secrets, bound_table, .has = FIELD_HAS(struct row, has_secrets),
		     .doc = "Those that are bound to hosts."),
};
static const struct field_table row_table = FIELD_TABLE(struct row, row_fields, .open = true);

void bound_write(const struct bound *b, struct json_writer *w)
{
	struct row_bound r;

	if (!b)
		return;
	r = (struct row_bound){ str_of(b->id), b->who, b->by_operator, { b->p, b->n } };
	json_write_key(w, "secrets");
	field_encode(&bound_table, &r, w);
}

static int read_file(int dir, const char *name, struct buf *to, struct err *e)
{
	autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	char *at;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open a sandbox's certificates");
	at = buf_reserve(to, (size_t)st.st_size, e);
	if (!at)
		return -1;
	if (fd_read(fd, at, (size_t)st.st_size) < 0)
		return err_sys(e, errno, "read a sandbox's certificates");
	buf_advance(to, (size_t)st.st_size);
	return 0;
}

/* Without them the sandbox runs on, but its requests get no value any more. */
static int read_authority(struct bound *b, struct err *e)
{
	autoclose int dir = open(b->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	autowipe struct buf key = BUF_INIT(AUTHORITY_PEM_MAX);
	autobuf struct buf ca = BUF_INIT(AUTHORITY_PEM_MAX);

	if (dir < 0)
		return err_sys(e, errno, "open the folder of a sandbox's certificates");
	if (read_file(dir, key_file, &key, e) < 0 || read_file(dir, ca_file, &ca, e) < 0 ||
	    buf_add(&ca, "", 1, e) < 0)
		return -1;
	b->ca = buf_take(&ca);
	b->key = secret_new(buf_str(&key), e);
	return b->key ? 0 : -1;
}

int bound_open(struct bound *b, const char *folder, struct err *e)
{
	struct err lost = ERR_INIT;

	if (b->folder)
		return 0;
	if (bound_place(b, folder, true, e) < 0)
		return -1;
	if (read_authority(b, &lost) < 0)
		log_warn("a sandbox has no secrets any more: %s", lost.msg);
	return 0;
}

int bound_read(struct str text, struct bound *(*find)(void *arg, struct str id), void *arg,
	       struct bound **ret, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	AUTO(arena_free) struct arena *a = NULL;
	struct row row;

	*ret = NULL;
	if (!memmem(text.p, text.n, "\"secrets\"", strlen("\"secrets\"")))
		return 0; /* as most have none */
	doc = json_parse(text, NULL, e);
	a = doc ? arena_new(ROW_MAX) : NULL;
	if (!a)
		return doc ? err_set(e, ERR_LIMIT, "out of memory") : -1;
	if (field_decode(&row_table, json_root(doc), a, &row, e) < 0)
		return -1;
	if (!row.has_secrets)
		return 0;
	if (memchr(row.secrets.id.p, '/', row.secrets.id.n) || row.secrets.id.p[0] == '.')
		return err_set(e, ERR_STORE_CORRUPT, "a sandbox's secrets in the registry");
	*ret = bound_ref(find(arg, row.secrets.id));
	if (*ret)
		return 0;
	*ret = bound_copy(row.secrets.placeholders.p, row.secrets.placeholders.n, row.secrets.who,
			  e);
	if (!*ret)
		return -1;
	(*ret)->by_operator = row.secrets.by_operator;
	snprintf((*ret)->id, sizeof((*ret)->id), "%.*s", STR_ARG(row.secrets.id));
	return 0;
}

void bound_sweep(const char *folder, bool (*needed)(void *arg, struct str id), void *arg)
{
	autofree char *path = NULL, *one = NULL;
	autofolder struct folder f = FOLDER_NONE;

	if (asprintf(&path, "%s/%s", folder, place_of(true)) < 0)
		return;
	f = folder_at(AT_FDCWD, path);
	/* The next start removes what this one does not see. */
	while (folder_next(&f) > 0) {
		if (f.entry->d_name[0] == '.' || needed(arg, str_of(f.entry->d_name)))
			continue;
		free(take_ptr(one));
		if (asprintf(&one, "%s/%s", path, f.entry->d_name) >= 0)
			remove_folder(one);
	}
}
