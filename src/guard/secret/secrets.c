#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "guard/secret/internal.h"

const char *const secrets_provider_names[SECRETS_PROVIDERS] = {
	[SECRETS_STORE] = "store",
	[SECRETS_ENV] = "env",
	[SECRETS_FILE] = "file",
	[SECRETS_COMMAND] = "command",
};

int secrets_check_name(struct str name, struct err *e)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	bool fits = name.n > 0 && name.n <= SECRETS_NAME_MAX && !strchr("._-", name.p[0]);

	for (size_t i = 0; fits && i < name.n; i++)
		fits = name.p[i] && strchr(letters, name.p[i]);
	return fits ? 0
		    : err_set(e, ERR_INVALID,
			      "a secret's name has 1 to %d of A-Z a-z 0-9 . _ - and begins with a "
			      "letter or digit",
			      SECRETS_NAME_MAX);
}

struct str secrets_text(struct str value)
{
	while (value.n > 0 && (value.p[value.n - 1] == '\n' || value.p[value.n - 1] == '\r'))
		value.n--;
	return value;
}

int secrets_unknown(struct str name, struct err *e)
{
	return err_set(e, ERR_SECRET_NOT_FOUND, "there is no secret %.*s", STR_ARG(name));
}

struct secret *secret_of(struct str name, struct str value, struct err *e)
{
	size_t n = secrets_text(value).n;

	if (value.n > SECRETS_MAX)
		err_set(e, ERR_INVALID, "secret %.*s: more than %d bytes", STR_ARG(name),
			SECRETS_MAX);
	else if (n < SECRETS_LEAST)
		err_set(e, ERR_INVALID,
			"secret %.*s: %zu bytes; fewer than %d can't be redacted, since they "
			"stand in other text by chance",
			STR_ARG(name), n, SECRETS_LEAST);
	else if (memchr(value.p, '\0', value.n))
		err_set(e, ERR_INVALID, "secret %.*s: it contains a NUL", STR_ARG(name));
	else
		return secret_new(value, e);
	return NULL;
}

int private_read(int at, const char *path, struct buf *to, struct err *e)
{
	autoclose int fd = openat(at, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	char *room;

	if (fd < 0 && errno == ELOOP)
		return err_set(e, ERR_DENIED, "the file is a symbolic link");
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open the file");
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_DENIED, "it is not a regular file");
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return err_set(e, ERR_DENIED, "the file belongs to another user");
	if (st.st_mode & 077)
		return err_set(e, ERR_DENIED,
			       "other users may use the file (mode %04o); it needs chmod 600",
			       st.st_mode & 07777);
	room = buf_reserve(to, to->max, e);
	if (!room)
		return -1;
	for (;;) {
		ssize_t n = read(fd, room + to->n, to->max - to->n);

		if (n < 0 && errno != EINTR)
			return err_sys(e, errno, "read the file");
		if (n == 0 || to->n == to->max)
			return 0;
		buf_advance(to, n > 0 ? (size_t)n : 0);
	}
}

/* ---- the operator's entries ---------------------------------------------------------------- */

static void sources_free(struct source *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; p[i].argv && p[i].argv[k]; k++)
			free(p[i].argv[k]);
		free(p[i].argv);
		free(p[i].from);
	}
	free(p);
}

static bool has_nul(struct str s)
{
	return s.n > 0 && memchr(s.p, '\0', s.n);
}

static int source_check(const struct secrets_source *from, struct err *e)
{
	bool of_command = from->provider == SECRETS_COMMAND, bad = false;
	bool of_text = from->provider == SECRETS_ENV || from->provider == SECRETS_FILE;

	if (secrets_check_name(from->name, e) < 0)
		return -1;
	for (size_t i = 0; i < from->n_argv; i++)
		bad |= has_nul(from->argv[i]);
	bad |= has_nul(from->from) || (of_text && from->from.n == 0) ||
	       (from->provider == SECRETS_FILE && from->from.n > 0 && from->from.p[0] != '/') ||
	       (from->provider == SECRETS_ENV && from->from.n > 0 &&
		memchr(from->from.p, '=', from->from.n)) ||
	       (of_command &&
		(from->n_argv == 0 || from->n_argv > SECRETS_ARGV_MAX || from->argv[0].n == 0));
	if (!bad)
		return 0;
	return err_set(e, ERR_INVALID, "secret %.*s: %s", STR_ARG(from->name),
		       of_command ? "command takes a program and up to 63 arguments"
		       : from->provider == SECRETS_FILE ? "file takes an absolute path"
							: "env takes the name of a variable");
}

static int source_fill(struct source *to, const struct secrets_source *from, struct err *e)
{
	bool ok;

	if (source_check(from, e) < 0)
		return -1;
	memcpy(to->name, from->name.p, from->name.n);
	to->provider = from->provider;
	to->from = mem_dup(from->from.p, from->from.n);
	to->argv = calloc(from->n_argv + 1, sizeof(*to->argv));
	ok = to->from && to->argv;
	for (size_t i = 0; ok && i < from->n_argv; i++) {
		to->argv[i] = mem_dup(from->argv[i].p, from->argv[i].n);
		ok = to->argv[i] != NULL;
	}
	return ok ? 0 : err_set(e, ERR_LIMIT, "out of memory");
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct source *)a)->name, ((const struct source *)b)->name);
}

int secrets_configure(struct secrets *s, const struct secrets_source *sources, size_t n,
		      struct err *e)
{
	struct source *p = calloc(n + 1, sizeof(*p));
	int rc = p ? 0 : err_set(e, ERR_LIMIT, "out of memory");

	for (size_t i = 0; i < n && rc == 0; i++)
		rc = source_fill(&p[i], &sources[i], e);
	if (rc == 0)
		qsort(p, n, sizeof(*p), by_name);
	for (size_t i = 1; i < n && rc == 0; i++) {
		if (strcmp(p[i - 1].name, p[i].name) == 0)
			rc = err_set(e, ERR_INVALID, "secret %s stands twice", p[i].name);
	}
	if (rc < 0) {
		if (p)
			sources_free(p, n);
		return -1;
	}
	sources_free(s->sources, s->n_sources);
	s->sources = p;
	s->n_sources = n;
	return 0;
}

const struct source *source_find(const struct secrets *s, struct str name)
{
	struct source key = { .provider = SECRETS_STORE };

	if (name.n == 0 || name.n > SECRETS_NAME_MAX)
		return NULL;
	memcpy(key.name, name.p, name.n);
	return s->n_sources ? bsearch(&key, s->sources, s->n_sources, sizeof(key), by_name) : NULL;
}

struct secrets *secrets_open(const char *folder, struct err *e)
{
	AUTO(secrets_free) struct secrets *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	s->folder = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (folder && s->folder < 0 && errno != ENOENT)
		return err_sys(e, errno, "open the data folder"), NULL;
	return take_ptr(s);
}

void secrets_free(struct secrets *s)
{
	if (!s)
		return;
	sources_free(s->sources, s->n_sources);
	close_fd(&s->folder);
	free(s);
}

/* ---- lists --------------------------------------------------------------------------------- */

struct listing {
	const struct secrets *of;
	struct buf names; /* of char[SECRETS_NAME_MAX + 1] */
	struct buf entries; /* their names are filled in at the end */
	struct err *e;
};

static int listing_add(struct listing *l, const char *name, enum secrets_provider provider,
		       int64_t changed_ms)
{
	const struct secrets_entry entry = { .provider = provider, .changed_ms = changed_ms };
	char text[SECRETS_NAME_MAX + 1] = "";

	strcpy(text, name);
	if (buf_add(&l->entries, &entry, sizeof(entry), l->e) < 0)
		return -1;
	return buf_add(&l->names, text, sizeof(text), l->e);
}

static int listing_add_stored(void *data, const char *name, int64_t changed_ms)
{
	struct listing *l = data;
	const struct source *src = source_find(l->of, str_of(name));

	if (!src)
		return listing_add(l, name, SECRETS_STORE, changed_ms);
	/* Entries of sources come first, in their order. */
	if (src->provider == SECRETS_STORE)
		((struct secrets_entry *)(void *)l->entries.p)[src - l->of->sources].changed_ms =
			changed_ms;
	return 0;
}

static int entries_by_name(const void *a, const void *b)
{
	return str_cmp(((const struct secrets_entry *)a)->name,
		       ((const struct secrets_entry *)b)->name);
}

int secrets_list(const struct secrets *s, struct secrets_entry **ret_p, size_t *ret_n,
		 struct err *e)
{
	struct listing l = { s, BUF_INIT(1 << 20), BUF_INIT(1 << 20), e };
	struct secrets_entry *p = NULL;
	size_t n, bytes;
	int rc = 0;

	for (size_t i = 0; i < s->n_sources && rc == 0; i++)
		rc = listing_add(&l, s->sources[i].name, s->sources[i].provider, 0);
	if (rc == 0)
		rc = store_list(s, listing_add_stored, &l, e);
	n = l.entries.n / sizeof(*p);
	bytes = l.entries.n + l.names.n;
	if (rc == 0 && !(p = malloc(bytes + 1)))
		rc = err_set(e, ERR_LIMIT, "out of memory");
	if (rc == 0 && n > 0) {
		char *names = (char *)p + l.entries.n;

		memcpy(p, l.entries.p, l.entries.n);
		memcpy(names, l.names.p, l.names.n);
		for (size_t i = 0; i < n; i++)
			p[i].name = str_of(names + i * (SECRETS_NAME_MAX + 1));
		qsort(p, n, sizeof(*p), entries_by_name);
	}
	buf_fini(&l.names);
	buf_fini(&l.entries);
	if (rc < 0)
		return -1;
	*ret_p = p;
	*ret_n = n;
	return 0;
}

/* ---- values that are at hand --------------------------------------------------------------- */

struct known {
	const struct secrets *of;
	void (*each)(void *data, struct str name, struct str value);
	void *data;
};

static void known_tell(struct known *k, struct str name, struct secret *value, const struct err *e)
{
	if (value)
		k->each(k->data, name, secret_expose(value, "to be redacted"));
	else
		log_warn("secret %.*s can't be redacted: %s", STR_ARG(name), e->msg);
	secret_free(value);
}

static int known_stored(void *data, const char *name, int64_t changed_ms)
{
	struct known *k = data;
	struct err e = ERR_INIT;

	known_tell(k, str_of(name), secrets_stored(k->of, str_of(name), &e), &e);
	return 0;
}

void secrets_known(const struct secrets *s,
		   void (*each)(void *data, struct str name, struct str value), void *data)
{
	struct known k = { s, each, data };
	struct err e = ERR_INIT;

	for (size_t i = 0; i < s->n_sources; i++) {
		const struct source *src = &s->sources[i];
		struct str name = str_of(src->name);
		const char *set = src->provider == SECRETS_ENV ? getenv(src->from) : NULL;
		autowipe struct buf b = VALUE_BUF;

		if (set)
			known_tell(&k, name, secret_of(name, str_of(set), &e), &e);
		if (src->provider == SECRETS_FILE)
			known_tell(&k, name,
				   private_read(AT_FDCWD, src->from, &b, &e) < 0
					   ? NULL
					   : secret_of(name, buf_str(&b), &e),
				   &e);
	}
	if (store_list(s, known_stored, &k, &e) < 0)
		log_warn("stored secrets can't be redacted: %s", e.msg);
}
