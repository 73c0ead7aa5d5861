/*
 * Tar: the contract is in tar.h.
 *
 * The reader is a machine that takes its input in pieces of any size. A header is collected into a
 * block; an extended header (PAX "x" and "g", GNU "L" and "K") is taken byte by byte to where its
 * values belong, so that none of it is ever held whole; content is handed on where it lies. Each
 * state says what the next byte is:
 *
 * 	HEADER -> (a file)     CONTENT -> PADDING -> HEADER
 * 	       -> (extended)   META    -> PADDING -> HEADER
 * 	       -> (no file)    PASSED  -> PADDING -> HEADER
 * 	       -> (two blocks of zeros) ENDED, where it stays
 * 	       -> (what is wrong) BROKEN, where it stays
 */
#include "box/archive/tar.h"

#include <stdio.h>
#include <string.h>

/* A header as it lies in the archive. */
struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], chksum[8], typeflag;
	char linkname[100], magic[6], version[2], uname[32], gname[32], devmajor[8], devminor[8];
	char prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == TAR_BLOCK, "a header is a block");

static unsigned sum_of(const struct header *h, bool with_sign)
{
	const unsigned char *p = (const unsigned char *)h;
	size_t from = offsetof(struct header, chksum), to = from + sizeof(h->chksum);
	unsigned sum = 0;

	for (size_t i = 0; i < sizeof(*h); i++) {
		unsigned char c = i >= from && i < to ? ' ' : p[i];

		sum += with_sign ? (unsigned)(signed char)c : c;
	}
	return sum;
}

/* ---- writing ------------------------------------------------------------------------------- */

static const char type_flags[] = {
	[TAR_FILE] = '0', [TAR_DIRECTORY] = '5', [TAR_SYMLINK] = '2', [TAR_HARDLINK] = '1'
};

/* In the eleven digits of a size or time. */
static bool fits_octal(uint64_t value)
{
	return value >> (3 * 11) == 0;
}

/* The whole field except its last byte, which is a NUL. */
static void put_octal(char *field, size_t n, uint64_t value)
{
	field[--n] = '\0';
	while (n > 0) {
		field[--n] = (char)('0' + (value & 7));
		value >>= 3;
	}
}

/* Where to split a path for a header: 0 if it is a name only, else the position of the '/'
 * between prefix and name; -1 if it does not fit. */
static long split_path(const char *path, size_t n)
{
	const struct header *h = NULL;

	if (n <= sizeof(h->name))
		return 0;
	for (size_t i = sizeof(h->prefix); i > 0; i--) {
		if (i < n - 1 && path[i] == '/' && n - i - 1 <= sizeof(h->name))
			return (long)i;
	}
	return -1;
}

/* Takes all but its names from e. In an extended header type and size are not those of e. */
static void put_header(char *out, char type, const char *path, size_t n, uint64_t size,
		       const struct tar_entry *e)
{
	const char *link = e->link;
	int64_t mtime = e->mtime;
	struct header *h = (struct header *)out;
	long cut = split_path(path, n);
	size_t link_n = strlen(link);

	memset(h, 0, sizeof(*h));
	if (cut > 0) {
		memcpy(h->prefix, path, (size_t)cut);
		path += cut + 1;
		n -= (size_t)cut + 1;
	}
	memcpy(h->name, path, n < sizeof(h->name) ? n : sizeof(h->name));
	memcpy(h->linkname, link, link_n < sizeof(h->linkname) ? link_n : sizeof(h->linkname));
	put_octal(h->mode, sizeof(h->mode), e->mode & 07777);
	put_octal(h->uid, sizeof(h->uid), e->uid);
	put_octal(h->gid, sizeof(h->gid), e->gid);
	put_octal(h->size, sizeof(h->size), fits_octal(size) ? size : 0);
	put_octal(h->mtime, sizeof(h->mtime),
		  mtime >= 0 && fits_octal((uint64_t)mtime) ? (uint64_t)mtime : 0);
	h->typeflag = type;
	memcpy(h->magic, "ustar", 6);
	memcpy(h->version, "00", 2);
	put_octal(h->chksum, 7, sum_of(h, false));
	h->chksum[7] = ' ';
}

/* "LENGTH KEY=VALUE\n"; the length includes its own digits. */
static size_t put_record(char *at, const char *key, const char *value, size_t value_n)
{
	size_t n = strlen(key) + value_n + 3, digits = 1, limit = 10;
	int head;

	for (; n + digits >= limit; limit *= 10)
		digits++;
	head = sprintf(at, "%zu %s=", n + digits, key);
	memcpy(at + head, value, value_n);
	at[n + digits - 1] = '\n';
	return n + digits;
}

/* Seconds and an optional fraction. Before the epoch both count downwards. */
static size_t put_time(char *at, int64_t s, uint32_t ns)
{
	bool below = s < 0 && ns > 0;
	char text[TAR_NUMBER_MAX];
	int n;

	if (below && s == -1)
		n = sprintf(text, "-0.%09u", 1000000000u - ns);
	else if (ns)
		n = sprintf(text, "%lld.%09u", (long long)(below ? s + 1 : s),
			    below ? 1000000000u - ns : ns);
	else
		n = sprintf(text, "%lld", (long long)s);
	return put_record(at, "mtime", text, (size_t)n);
}

/* Writes records for what the header can't express, n bytes. */
static size_t put_records(char *at, const struct tar_entry *e, const char *path, size_t path_n)
{
	char number[TAR_NUMBER_MAX];
	size_t n = 0;

	if (split_path(path, path_n) < 0)
		n += put_record(at + n, "path", path, path_n);
	if (strlen(e->link) > sizeof(((struct header *)0)->linkname))
		n += put_record(at + n, "linkpath", e->link, strlen(e->link));
	if (!fits_octal(e->size))
		n += put_record(at + n, "size", number,
				(size_t)sprintf(number, "%llu", (unsigned long long)e->size));
	if (e->mtime_ns || e->mtime < 0 || !fits_octal((uint64_t)e->mtime))
		n += put_time(at + n, e->mtime, e->mtime_ns);
	return n;
}

/* The header of n bytes of records, which stand behind it; with their padding. */
static size_t put_extended(char *out, char type, size_t n)
{
	put_header(out, type, "pax", 3, n, &(struct tar_entry){ .mode = 0644, .link = "" });
	memset(out + TAR_BLOCK + n, 0, tar_padding(n));
	return TAR_BLOCK + n + tar_padding(n);
}

size_t tar_comment(const char *text, char out[TAR_HEAD_MAX])
{
	return put_extended(out, 'g', put_record(out + TAR_BLOCK, "comment", text, strlen(text)));
}

size_t tar_head(const struct tar_entry *e, char out[TAR_HEAD_MAX])
{
	size_t path_n = strlen(e->path), link_n = strlen(e->link), meta, n = 0;
	char path[TAR_PATH_MAX];

	if (path_n == 0 || path_n >= TAR_PATH_MAX || link_n >= TAR_PATH_MAX ||
	    (link_n == 0) != (e->type == TAR_FILE || e->type == TAR_DIRECTORY))
		return 0;
	memcpy(path, e->path, path_n);
	if (e->type == TAR_DIRECTORY && path[path_n - 1] != '/')
		path[path_n++] = '/';
	if (path_n >= TAR_PATH_MAX)
		return 0;
	meta = put_records(out + TAR_BLOCK, e, path, path_n);
	if (meta)
		n = put_extended(out, 'x', meta);
	put_header(out + n, type_flags[e->type], path, path_n, e->type == TAR_FILE ? e->size : 0,
		   e);
	return n + TAR_BLOCK;
}

/* ---- reading: numbers ---------------------------------------------------------------------- */

/* Far enough from both ends of the type. */
#define TIME_MAX (INT64_MAX / 2)

static const char *const why_texts[TAR_WHYS] = {
	[TAR_FINE] = "it is whole",
	[TAR_WHY_CUT] = "it ends in the middle",
	[TAR_WHY_CHECKSUM] =
		"a header's checksum is wrong: it is damaged, compressed or no tar archive",
	[TAR_WHY_NUMBER] = "a number in a header can't be read",
	[TAR_WHY_NAME] = "an entry has no name, or one with a NUL in it",
	[TAR_WHY_LONG] = "a path in it is longer than 4095 bytes",
	[TAR_WHY_RECORD] = "an extended header can't be read",
	[TAR_WHY_META] = "the extended headers of an entry are larger than 1 MiB",
	[TAR_WHY_GLOBAL] = "a global header in it names a file or a size",
	[TAR_WHY_SPARSE] = "a file in it is sparse; make it without --sparse",
	[TAR_WHY_CONTENT] = "an entry that is no file has content",
	[TAR_WHY_AFTER] = "there is more behind its end",
};

const char *tar_why_text(enum tar_why why)
{
	return why_texts[why < TAR_WHYS ? why : TAR_WHY_RECORD];
}

/* GNU's form of numbers too large for octal: big-endian, two's complement, marked by the first
 * bit. */
static bool get_base256(const char *field, size_t n, int64_t *ret)
{
	const unsigned char *p = (const unsigned char *)field;
	uint64_t value = *p & 0x40 ? UINT64_MAX : 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = i == 0 ? (unsigned char)(*p & 0x40 ? *p : *p & 0x3f) : p[i];

		if (n - i > 8 && c != (unsigned char)value)
			return false; /* more than 64 bits */
		value = value << 8 | c;
	}
	*ret = (int64_t)value;
	return (*ret < 0) == ((*p & 0x40) != 0);
}

/* Octal between spaces, up to a space or NUL; an empty field is 0. */
static bool get_number(const char *field, size_t n, int64_t *ret)
{
	uint64_t value = 0;
	size_t i = 0;

	if ((unsigned char)field[0] & 0x80)
		return get_base256(field, n, ret);
	while (i < n && field[i] == ' ')
		i++;
	for (; i < n && field[i] >= '0' && field[i] <= '7'; i++)
		value = value << 3 | (uint64_t)(field[i] - '0');
	for (; i < n; i++) {
		if (field[i] != ' ' && field[i] != '\0')
			return false;
	}
	*ret = (int64_t)value; /* 12 digits have 36 bits */
	return true;
}

static bool digits_of(const char **at, uint64_t limit, uint64_t *ret)
{
	const char *p = *at;
	uint64_t value = 0;

	for (; *p >= '0' && *p <= '9'; p++) {
		if (value > (limit - (uint64_t)(*p - '0')) / 10)
			return false;
		value = value * 10 + (uint64_t)(*p - '0');
	}
	*ret = value;
	if (p == *at)
		return false;
	*at = p;
	return true;
}

/* "-12.5" is twelve and a half seconds before the epoch. Digits behind the ninth are left out. */
static bool get_time(const char *text, int64_t *ret_s, uint32_t *ret_ns)
{
	bool below = *text == '-';
	uint32_t ns = 0, unit = 100000000;
	uint64_t s;

	text += below;
	if (!digits_of(&text, TIME_MAX, &s))
		return false;
	if (*text == '.') {
		for (text++; *text >= '0' && *text <= '9'; text++, unit /= 10)
			ns += unit * (uint32_t)(*text - '0');
	}
	if (*text)
		return false;
	*ret_s = below ? -(int64_t)s - (ns > 0) : (int64_t)s;
	*ret_ns = below && ns ? 1000000000u - ns : ns;
	return true;
}

/* ---- reading: extended headers ------------------------------------------------------------- */

enum state { HEADER, CONTENT, META_PAX, META_PATH, META_LINK, PASSED, PADDING, ENDED, BROKEN };
enum { HAVE_PATH = 1, HAVE_LINK = 2, HAVE_SIZE = 4, HAVE_MTIME = 8 };
enum phase { LENGTH, KEY, VALUE, NEWLINE };
enum key { KEY_OTHER, KEY_PATH, KEY_LINK, KEY_SIZE, KEY_MTIME, KEY_COMMENT };

static enum tar_event tar_bad(struct tar_reader *r, enum tar_why why)
{
	r->state = BROKEN;
	r->why = why;
	return TAR_BAD;
}

/* Other keys are ignored; keys that change the meaning of the content are refused. */
static enum tar_why start_value(struct tar_reader *r)
{
	static const char *const keys[] = { [KEY_PATH] = "path",
					    [KEY_LINK] = "linkpath",
					    [KEY_SIZE] = "size",
					    [KEY_MTIME] = "mtime",
					    [KEY_COMMENT] = "comment" };

	r->pax.key[r->pax.n] = '\0';
	r->pax.n = 0;
	r->pax.key_id = KEY_OTHER;
	if (strncmp(r->pax.key, "GNU.sparse.", 11) == 0)
		return TAR_WHY_SPARSE;
	for (unsigned i = KEY_PATH; i <= KEY_COMMENT; i++) {
		if (strcmp(r->pax.key, keys[i]) == 0)
			r->pax.key_id = i;
	}
	if (!r->pax.global)
		return TAR_FINE;
	if (r->pax.key_id != KEY_OTHER && r->pax.key_id < KEY_MTIME)
		return TAR_WHY_GLOBAL;
	r->pax.key_id = r->pax.key_id == KEY_COMMENT ? KEY_COMMENT : KEY_OTHER;
	return TAR_FINE;
}

static enum tar_why add_to(char *to, size_t size, size_t *n, char c, enum tar_why if_full)
{
	if (c == '\0')
		return TAR_WHY_NAME;
	if (*n + 1 >= size)
		return if_full;
	to[(*n)++] = c;
	return TAR_FINE;
}

static enum tar_why add_value(struct tar_reader *r, char c)
{
	switch (r->pax.key_id) {
	case KEY_PATH:
		return add_to(r->path, sizeof(r->path), &r->pax.n, c, TAR_WHY_LONG);
	case KEY_LINK:
		return add_to(r->link, sizeof(r->link), &r->pax.n, c, TAR_WHY_LONG);
	case KEY_SIZE:
	case KEY_MTIME:
		return add_to(r->pax.number, sizeof(r->pax.number), &r->pax.n, c, TAR_WHY_NUMBER);
	case KEY_COMMENT:
		if (r->pax.global && r->pax.n + 1 < sizeof(r->comment))
			r->comment[r->pax.n++] = c;
		return TAR_FINE;
	default:
		return TAR_FINE;
	}
}

/* An empty value takes back what was said before. */
static enum tar_why end_value(struct tar_reader *r)
{
	static const unsigned flags[] = { 0, HAVE_PATH, HAVE_LINK, HAVE_SIZE, HAVE_MTIME, 0 };
	const char *number = r->pax.number;

	r->have &= ~flags[r->pax.key_id];
	if (r->pax.n == 0)
		return TAR_FINE;
	r->have |= flags[r->pax.key_id];
	switch (r->pax.key_id) {
	case KEY_PATH:
		r->path[r->pax.n] = '\0';
		break;
	case KEY_LINK:
		r->link[r->pax.n] = '\0';
		break;
	case KEY_SIZE:
		r->pax.number[r->pax.n] = '\0';
		return digits_of(&number, INT64_MAX, &r->pax_size) && !*number ? TAR_FINE
									       : TAR_WHY_NUMBER;
	case KEY_MTIME:
		r->pax.number[r->pax.n] = '\0';
		return get_time(number, &r->pax_mtime, &r->pax_mtime_ns) ? TAR_FINE
									 : TAR_WHY_NUMBER;
	case KEY_COMMENT:
		r->comment[r->pax.n] = '\0';
		break;
	default:
		break;
	}
	return TAR_FINE;
}

/* The length of a record counts all of it, including its digits. */
static enum tar_why take_length(struct tar_reader *r, char c)
{
	if (c >= '0' && c <= '9' && r->pax.digits < 7) {
		r->pax.left = r->pax.left * 10 + (size_t)(c - '0');
		r->pax.digits++;
		return TAR_FINE;
	}
	if (c != ' ' || r->pax.left < r->pax.digits + sizeof(" k=\n") - 1)
		return TAR_WHY_RECORD;
	r->pax.left -= r->pax.digits + 1;
	r->pax.n = 0;
	r->pax.phase = KEY;
	return TAR_FINE;
}

static enum tar_why take_key(struct tar_reader *r, char c)
{
	enum tar_why why;

	r->pax.left--;
	if (c != '=') { /* one that is longer than all we know is cut */
		if (r->pax.n < TAR_KEY_MAX - 1)
			r->pax.key[r->pax.n++] = c;
		return c == '\0' || r->pax.left < 2 ? TAR_WHY_RECORD : TAR_FINE;
	}
	if (r->pax.n == 0 || r->pax.left < 1)
		return TAR_WHY_RECORD;
	why = start_value(r);
	r->pax.phase = r->pax.left == 1 ? NEWLINE : VALUE;
	return why ? why : r->pax.phase == NEWLINE ? end_value(r) : TAR_FINE;
}

static enum tar_why take_pax(struct tar_reader *r, char c)
{
	enum tar_why why;

	switch ((enum phase)r->pax.phase) {
	case LENGTH:
		return take_length(r, c);
	case KEY:
		return take_key(r, c);
	case VALUE:
		why = add_value(r, c);
		if (--r->pax.left > 1 || why)
			return why;
		r->pax.phase = NEWLINE;
		return end_value(r);
	case NEWLINE:
		r->pax.phase = LENGTH;
		r->pax.left = 0;
		r->pax.digits = 0;
		return c == '\n' ? TAR_FINE : TAR_WHY_RECORD;
	}
	return TAR_WHY_RECORD;
}

/* A name of GNU's: up to its NUL. */
static enum tar_why take_long(struct tar_reader *r, char *to, unsigned flag, char c)
{
	if (c == '\0')
		return r->left == 1 && r->at > 0 ? TAR_FINE : TAR_WHY_NAME;
	if (r->at + 1 >= TAR_PATH_MAX)
		return TAR_WHY_LONG;
	to[r->at++] = c;
	to[r->at] = '\0';
	r->have |= flag;
	return TAR_FINE;
}

static enum tar_why take_meta(struct tar_reader *r, char c)
{
	enum tar_why why = r->state == META_PATH ? take_long(r, r->path, HAVE_PATH, c)
			 : r->state == META_LINK ? take_long(r, r->link, HAVE_LINK, c)
						 : take_pax(r, c);

	r->left--;
	if (why || r->left)
		return why;
	if (r->state == META_PAX && (r->pax.phase != LENGTH || r->pax.digits))
		return TAR_WHY_RECORD;
	return TAR_FINE;
}

static void start_padding(struct tar_reader *r)
{
	r->state = r->pad ? PADDING : HEADER;
	r->at = 0;
}

static enum tar_event start_meta(struct tar_reader *r, char type, uint64_t size)
{
	if (size > TAR_META_MAX - r->meta)
		return tar_bad(r, TAR_WHY_META);
	if (size == 0)
		return tar_bad(r, TAR_WHY_RECORD);
	r->meta += (size_t)size;
	r->left = size;
	r->pad = tar_padding(size);
	r->at = 0;
	r->state = type == 'L' ? META_PATH : type == 'K' ? META_LINK : META_PAX;
	r->pax.phase = LENGTH;
	r->pax.left = 0;
	r->pax.digits = 0;
	r->pax.global = type == 'g';
	return TAR_MORE;
}

/* ---- reading: headers ---------------------------------------------------------------------- */

static size_t field_length(const char *field, size_t max)
{
	const char *end = memchr(field, '\0', max);

	return end ? (size_t)(end - field) : max;
}

/* Only ustar has a prefix; other formats store other data there. */
static void fill_names(struct tar_reader *r, const struct header *h)
{
	size_t name = field_length(h->name, sizeof(h->name));
	size_t prefix = memcmp(h->magic, "ustar", 6) == 0
			      ? field_length(h->prefix, sizeof(h->prefix))
			      : 0;
	size_t link = field_length(h->linkname, sizeof(h->linkname));

	if (!(r->have & HAVE_PATH)) {
		memcpy(r->path, h->prefix, prefix);
		if (prefix)
			r->path[prefix++] = '/';
		memcpy(r->path + prefix, h->name, name);
		r->path[prefix + name] = '\0';
	}
	if (!(r->have & HAVE_LINK)) {
		memcpy(r->link, h->linkname, link);
		r->link[link] = '\0';
	}
}

/* False: it is of no kind that is known here. */
static bool fill_type(struct tar_reader *r, char flag)
{
	size_t n = strlen(r->path);

	switch (flag) {
	case '\0':
	case '0':
	case '7':
		/* v7 has no other mark of a directory */
		r->entry.type = n && r->path[n - 1] == '/' ? TAR_DIRECTORY : TAR_FILE;
		return true;
	case '1':
		r->entry.type = TAR_HARDLINK;
		return true;
	case '2':
		r->entry.type = TAR_SYMLINK;
		return true;
	case '5':
		r->entry.type = TAR_DIRECTORY;
		return true;
	default:
		return false;
	}
}

static uint32_t owner_of(const char *field, size_t n)
{
	int64_t id;

	return get_number(field, n, &id) && id >= 0 && id < 1 << 21 ? (uint32_t)id : 65534;
}

static enum tar_event start_entry(struct tar_reader *r, const struct header *h, uint64_t size,
				  int64_t mode, int64_t mtime)
{
	bool known, linked;

	fill_names(r, h);
	known = fill_type(r, h->typeflag);
	linked = known && (r->entry.type == TAR_HARDLINK || r->entry.type == TAR_SYMLINK);
	if (r->path[0] == '\0' || (linked && r->link[0] == '\0'))
		return tar_bad(r, TAR_WHY_NAME);
	size = r->have & HAVE_SIZE ? r->pax_size : size;
	if (known && r->entry.type != TAR_FILE && size)
		return tar_bad(r, TAR_WHY_CONTENT);
	if (!linked)
		r->link[0] = '\0';
	r->entry.mode = (uint32_t)mode & 07777;
	r->entry.uid = owner_of(h->uid, sizeof(h->uid));
	r->entry.gid = owner_of(h->gid, sizeof(h->gid));
	r->entry.size = size;
	r->entry.mtime = r->have & HAVE_MTIME ? r->pax_mtime : mtime;
	r->entry.mtime_ns = r->have & HAVE_MTIME ? r->pax_mtime_ns : 0;
	r->entry.path = r->path;
	r->entry.link = r->link;
	r->have = 0;
	r->meta = 0;
	r->at = 0;
	r->left = size;
	r->pad = tar_padding(size);
	if (!known)
		r->state = PASSED;
	else if (r->entry.type == TAR_FILE)
		r->state = CONTENT;
	return known ? TAR_ENTRY : TAR_PASSED;
}

static enum tar_event take_header(struct tar_reader *r)
{
	const struct header *h = (const struct header *)r->block;
	int64_t sum, size, mode, mtime;

	if (!get_number(h->chksum, sizeof(h->chksum), &sum) ||
	    (sum != (int64_t)sum_of(h, false) && sum != (int64_t)(int)sum_of(h, true)))
		return tar_bad(r, TAR_WHY_CHECKSUM);
	if (r->zero)
		return tar_bad(r, TAR_WHY_AFTER);
	if (!get_number(h->size, sizeof(h->size), &size) || size < 0 ||
	    !get_number(h->mode, sizeof(h->mode), &mode) ||
	    !get_number(h->mtime, sizeof(h->mtime), &mtime) || mtime > TIME_MAX ||
	    mtime < -TIME_MAX)
		return tar_bad(r, TAR_WHY_NUMBER);
	switch (h->typeflag) {
	case 'x':
	case 'g':
	case 'L':
	case 'K':
		return start_meta(r, h->typeflag, (uint64_t)size);
	case 'S':
		return tar_bad(r, TAR_WHY_SPARSE);
	default:
		return start_entry(r, h, (uint64_t)size, mode, mtime);
	}
}

static size_t tar_step(const char **p, size_t *n, uint64_t most)
{
	size_t took = *n < most ? *n : (size_t)most;

	*p += took;
	*n -= took;
	return took;
}

static enum tar_event read_header(struct tar_reader *r, const char **p, size_t *n)
{
	const char *from = *p;
	size_t took = tar_step(p, n, TAR_BLOCK - r->at);

	memcpy(r->block + r->at, from, took);
	r->at += took;
	if (r->at < TAR_BLOCK)
		return TAR_MORE;
	r->at = 0;
	if (!tar_is_zero(r->block, TAR_BLOCK))
		return take_header(r);
	if (r->have)
		return tar_bad(r, TAR_WHY_CUT);
	if (!r->zero) {
		r->zero = true;
		return TAR_MORE;
	}
	r->state = ENDED;
	r->ended = true;
	return TAR_END;
}

/* ---- reading: the machine ------------------------------------------------------------------ */

void tar_reader_init(struct tar_reader *r)
{
	memset(r, 0, sizeof(*r));
	r->entry.path = r->path;
	r->entry.link = r->link;
}

static enum tar_event read_content(struct tar_reader *r, const char **p, size_t *n)
{
	if (r->left == 0) {
		start_padding(r);
		return TAR_ENTRY_END;
	}
	r->content = *p;
	r->content_n = tar_step(p, n, r->left);
	r->left -= r->content_n;
	return r->content_n ? TAR_CONTENT : TAR_MORE;
}

static enum tar_event read_meta(struct tar_reader *r, const char **p, size_t *n)
{
	while (*n > 0 && r->left > 0) {
		enum tar_why why = take_meta(r, **p);

		tar_step(p, n, 1);
		if (why)
			return tar_bad(r, why);
	}
	if (r->left == 0)
		start_padding(r);
	return TAR_MORE;
}

/* Skips the content of an entry that is passed over, or the padding. */
static enum tar_event read_over(struct tar_reader *r, const char **p, size_t *n)
{
	if (r->state == PASSED) {
		r->left -= tar_step(p, n, r->left);
		if (r->left == 0)
			start_padding(r);
		return TAR_MORE;
	}
	r->pad -= tar_step(p, n, r->pad);
	if (r->pad == 0)
		start_padding(r);
	return TAR_MORE;
}

static enum tar_event read_end(struct tar_reader *r, const char **p, size_t *n)
{
	if (!tar_is_zero(*p, *n))
		return tar_bad(r, TAR_WHY_AFTER);
	tar_step(p, n, *n);
	return TAR_MORE;
}

enum tar_event tar_read(struct tar_reader *r, const char **p, size_t *n)
{
	enum tar_event ev = TAR_MORE;

	/* an empty file ends without a byte */
	while (ev == TAR_MORE &&
	       (*n > 0 || (r->state == CONTENT && r->left == 0) || r->state == BROKEN)) {
		switch ((enum state)r->state) {
		case HEADER:
			ev = read_header(r, p, n);
			break;
		case CONTENT:
			ev = read_content(r, p, n);
			break;
		case META_PAX:
		case META_PATH:
		case META_LINK:
			ev = read_meta(r, p, n);
			break;
		case PASSED:
		case PADDING:
			ev = read_over(r, p, n);
			break;
		case ENDED:
			ev = read_end(r, p, n);
			break;
		case BROKEN:
			return TAR_BAD;
		}
	}
	return ev;
}

/* Some writers end with one block of zeros. */
enum tar_why tar_reader_end(struct tar_reader *r)
{
	if (r->state == BROKEN)
		return r->why;
	return r->ended || (r->zero && r->at == 0) ? TAR_FINE : TAR_WHY_CUT;
}

/* ---- paths --------------------------------------------------------------------------------- */

bool tar_path_clean(char *path)
{
	char *to = path;
	const char *at = path;

	while (*at) {
		size_t n = strcspn(at, "/");

		if (n == 2 && at[0] == '.' && at[1] == '.')
			return false;
		if (n > 0 && !(n == 1 && at[0] == '.')) {
			if (to != path)
				*to++ = '/';
			memmove(to, at, n);
			to += n;
		}
		at += n;
		at += *at == '/';
	}
	if (to == path)
		*to++ = '.';
	*to = '\0';
	return true;
}
