#include "base/gitconf.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

static int malformed(void)
{
	errno = EINVAL;
	return -1;
}

/* Git's own set, which is not that of isspace(3). */
static bool is_space(int byte)
{
	return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* ---- configuration ------------------------------------------------------------------------- */

struct conf {
	const char *at, *end;
	char key[GITCONF_KEY_MAX];
	size_t section; /* bytes of the key that are the section's, its '.' counted */
	char *value; /* room for all of the text */
};

/* -1: the end. A CR before a LF is no character. */
static int conf_next(struct conf *c)
{
	if (c->end - c->at > 1 && c->at[0] == '\r' && c->at[1] == '\n')
		c->at++;
	return c->at < c->end ? (unsigned char)*c->at++ : -1;
}

static bool conf_add(struct conf *c, size_t *n, int byte)
{
	if (*n + 1 >= sizeof(c->key) || byte <= 0)
		return false;
	c->key[(*n)++] = (char)byte;
	return true;
}

/* Behind the first quote of [section "subsection"]. */
static int conf_subsection(struct conf *c, size_t *n)
{
	int byte;

	while ((byte = conf_next(c)) != '"') {
		if (byte == '\\')
			byte = conf_next(c);
		if (byte == '\n' || !conf_add(c, n, byte))
			return malformed();
	}
	return conf_next(c) == ']' ? 0 : malformed();
}

/* Behind the '['. */
static int conf_section(struct conf *c)
{
	size_t n = 0;
	int byte;

	while ((byte = conf_next(c)) != ']') {
		if (byte == ' ' || byte == '\t') {
			while (byte == ' ' || byte == '\t')
				byte = conf_next(c);
			if (byte != '"' || !conf_add(c, &n, '.') || conf_subsection(c, &n) < 0)
				return malformed();
			break;
		}
		if (!(byte > 0 && (isalnum(byte) || byte == '-' || byte == '.')) ||
		    !conf_add(c, &n, tolower(byte)))
			return malformed();
	}
	if (n == 0 || !conf_add(c, &n, '.'))
		return malformed();
	c->section = n;
	return 0;
}

static void conf_skip_line(struct conf *c)
{
	int byte;

	do
		byte = conf_next(c);
	while (byte >= 0 && byte != '\n');
}

/* Behind a backslash. -1: nothing that git knows; 0: the line goes on in the next. */
static int conf_escaped(int byte)
{
	static const char from[] = "\ntbn\\\"", to[] = "\0\t\b\n\\\"";
	const char *at = byte > 0 ? strchr(from, byte) : NULL;

	return at ? to[at - from] : -1;
}

/* Behind the '='. Spaces at both ends are no part of it unless they are quoted. */
static int conf_value(struct conf *c)
{
	size_t n = 0, keep = 0;
	bool quoted = false;
	int byte;

	while ((byte = conf_next(c)) >= 0 && byte != '\n') {
		if (!quoted && (byte == '#' || byte == ';')) {
			conf_skip_line(c);
			break;
		}
		if (byte == '"') {
			quoted = !quoted;
			keep = n;
			continue;
		}
		if (!quoted && is_space(byte)) {
			if (n > 0)
				c->value[n++] = (char)byte;
			continue;
		}
		if (byte == '\\') {
			byte = conf_escaped(conf_next(c));
			if (byte < 0)
				return malformed();
			if (byte == 0)
				continue;
		}
		if (byte == 0)
			return malformed();
		c->value[n++] = (char)byte;
		keep = n;
	}
	c->value[keep] = '\0';
	return quoted ? malformed() : 0;
}

/* first: the letter that it begins with. */
static int conf_variable(struct conf *c, int first, gitconf_fn *fn, void *data)
{
	size_t n = c->section;
	int byte = first;

	if (!n || !isalpha(first))
		return malformed();
	for (; byte > 0 && (isalnum(byte) || byte == '-'); byte = conf_next(c)) {
		if (!conf_add(c, &n, tolower(byte)))
			return malformed();
	}
	c->key[n] = '\0';
	while (byte == ' ' || byte == '\t')
		byte = conf_next(c);
	if (byte == '#' || byte == ';')
		conf_skip_line(c);
	if (byte == '\n' || byte < 0 || byte == '#' || byte == ';')
		return 0; /* one without a value is true */
	if (byte != '=' || conf_value(c) < 0)
		return malformed();
	return fn(data, c->key, c->value);
}

int gitconf_read(struct str text, gitconf_fn *fn, void *data)
{
	struct conf c = { .at = text.p, .end = text.p + text.n };
	int failed = 0;

	if (text.n > GITCONF_BYTES_MAX)
		return malformed();
	c.value = malloc(text.n + 1);
	if (!c.value)
		return -1;
	if (str_starts(text, "\xef\xbb\xbf"))
		c.at += 3;
	while (c.at < c.end && !failed) {
		int byte = conf_next(&c);

		if (byte == '#' || byte == ';')
			conf_skip_line(&c);
		else if (byte == '[')
			failed = conf_section(&c);
		else if (byte >= 0 && !is_space(byte))
			failed = conf_variable(&c, byte, fn, data);
	}
	free(c.value);
	return failed;
}

/* ---- index --------------------------------------------------------------------------------- */

enum {
	INDEX_HEAD = 12,
	ENTRY_MODE = 24, /* its place in an entry */
	ENTRY_HASH = 40,
	ENTRY_LONG = 0x4000, /* a flag: two bytes more of flags */
	ENTRY_ASSUMED = 0x8000, /* --assume-unchanged */
	ENTRY_SKIPPED = 0x4000, /* --skip-worktree: a flag of the two bytes more */
	MODE_TYPE = 0170000,
	MODE_LINK = 0160000,
	PATH_BYTES = 4096,
};

struct index {
	const char *at, *end;
	unsigned version;
	size_t hash;
	size_t n; /* bytes of the path */
	char path[PATH_BYTES];
};

static uint32_t number(const char *p)
{
	const unsigned char *u = (const unsigned char *)p;

	return (uint32_t)u[0] << 24 | (uint32_t)u[1] << 16 | (uint32_t)u[2] << 8 | u[3];
}

static bool index_has(const struct index *x, size_t n)
{
	return (size_t)(x->end - x->at) >= n;
}

/* How many bytes of the last path are not this one's. */
static int index_strip(struct index *x, size_t *ret)
{
	size_t value = 0;

	for (int i = 0; i < 4 && index_has(x, 1); i++) {
		unsigned char byte = (unsigned char)*x->at++;

		value = value << 7 | (byte & 127u);
		if (!(byte & 128u)) {
			*ret = value;
			return 0;
		}
		value++;
	}
	return malformed();
}

static int index_path(struct index *x)
{
	size_t strip = x->n, len;
	const char *nul;

	if (x->version == 4 && index_strip(x, &strip) < 0)
		return -1;
	nul = index_has(x, 1) ? memchr(x->at, '\0', (size_t)(x->end - x->at)) : NULL;
	if (!nul || strip > x->n)
		return malformed();
	len = (size_t)(nul - x->at);
	x->n -= strip;
	if (x->n + len >= sizeof(x->path))
		return malformed();
	memcpy(x->path + x->n, x->at, len + 1);
	x->n += len;
	x->at = nul + 1;
	return 0;
}

static int index_entry(struct index *x, gitindex_fn *fn, void *data)
{
	const char *entry = x->at;
	size_t fixed = ENTRY_HASH + x->hash + 2, used;
	unsigned flags;
	bool is_link, hidden;
	int rc;

	if (!index_has(x, fixed + 2))
		return malformed();
	is_link = (number(entry + ENTRY_MODE) & MODE_TYPE) == MODE_LINK;
	x->at += fixed;
	flags = number(entry + fixed - 2) >> 16;
	hidden = flags & ENTRY_ASSUMED;
	if (x->version >= 3 && flags & ENTRY_LONG) {
		hidden = hidden || (number(entry + fixed - 2) & ENTRY_SKIPPED);
		x->at += 2;
	}
	if (index_path(x) < 0)
		return -1;
	if (x->version < 4) { /* with 1 to 8 NULs it is a multiple of 8 */
		used = (size_t)(x->at - entry - 1);
		used = (used + 8) & ~(size_t)7;
		if ((size_t)(x->end - entry) < used)
			return malformed();
		x->at = entry + used;
	}
	rc = hidden ? fn(data, x->path, GITINDEX_HIDDEN) : 0;
	if (rc || !is_link)
		return rc;
	/* one without a path takes its path from the shared index: git writes no such thing for a
	 * link that the shared one has as a file */
	return x->n ? fn(data, x->path, GITINDEX_LINK) : malformed();
}

static int index_extensions(struct index *x, struct str *ret_shared)
{
	while (index_has(x, 8 + x->hash)) {
		uint32_t size = number(x->at + 4);
		bool is_link = memcmp(x->at, "link", 4) == 0;

		x->at += 8;
		if (!index_has(x, size))
			return malformed();
		if (is_link && size >= x->hash)
			*ret_shared = (struct str){ x->at, x->hash };
		x->at += size;
	}
	return 0;
}

int gitindex_read(struct str text, size_t hash, gitindex_fn *fn, void *data, struct str *ret_shared)
{
	struct index x = { .at = text.p, .end = text.p + text.n, .hash = hash };
	uint32_t entries;
	int failed = 0;

	*ret_shared = (struct str){ text.p, 0 };
	if (!index_has(&x, INDEX_HEAD) || memcmp(x.at, "DIRC", 4) != 0)
		return malformed();
	x.version = number(x.at + 4);
	entries = number(x.at + 8);
	if (x.version < 2 || x.version > 4)
		return malformed();
	x.at += INDEX_HEAD;
	for (uint32_t i = 0; i < entries && !failed; i++)
		failed = index_entry(&x, fn, data);
	return failed ? failed : index_extensions(&x, ret_shared);
}
