/*
 * Prints content for people: text as text, other content as a line that describes it, or as a file
 * with --out. Files get names of ours; existing files are never touched.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base64.h"
#include "cli/common/file.h"
#include "cli/peer/internal.h"
#include "cli/common/safe.h"

enum { DATA_MAX = 64 << 20, TRIES_MAX = 10000, CHOICES_MAX = 12 };

static const struct option_row content_rows[] = {
	PEER_ROWS(struct peer_verb),
	OPTION(struct peer_verb, peer.out, OPTION_TEXT, "out", .letter = 'o', .arg = "DIR",
	       .doc = "Save images, sounds and resources as files in this folder."),
	HELP_ROW(struct peer_verb),
};
const struct option_table peer_content = OPTION_TABLE(content_rows, .mixed = true);

/* ---- files --------------------------------------------------------------------------------- */

static const struct {
	const char *mime, *suffix;
} suffixes[] = {
	{ "image/png", "png" },		{ "image/jpeg", "jpg" },      { "image/gif", "gif" },
	{ "image/webp", "webp" },	{ "image/svg+xml", "svg" },   { "audio/wav", "wav" },
	{ "audio/mpeg", "mp3" },	{ "audio/ogg", "ogg" },	      { "text/plain", "txt" },
	{ "text/markdown", "md" },	{ "text/html", "html" },      { "text/css", "css" },
	{ "application/json", "json" }, { "application/pdf", "pdf" }, { "application/gzip", "gz" },
	{ "application/zip", "zip" },
};

static const char *suffix_of(struct str mime, bool text)
{
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		if (str_is(mime, suffixes[i].mime))
			return suffixes[i].suffix;
	}
	return text ? "txt" : "bin";
}

static int open_folder(const struct peer *p, struct err *e)
{
	int fd;

	if (mkdir(p->o->out, 0777) < 0 && errno != EEXIST)
		return err_sys(e, errno, "make %.120s", p->o->out);
	fd = open(p->o->out, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, errno, "open %.120s", p->o->out) : fd;
}

/* Creates a file in the folder; its name goes to ret. */
static int open_new(struct peer *p, int folder, const char *kind, const char *suffix, char ret[64],
		    struct err *e)
{
	while (p->saved < TRIES_MAX) {
		int fd;

		snprintf(ret, 64, "%s-%u.%s", kind, ++p->saved, suffix);
		fd = openat(folder, ret, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			    0666);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return err_sys(e, errno, "make a file in %.120s", p->o->out);
	}
	return err_set(e, ERR_LIMIT, "%.120s is full of such files", p->o->out);
}

/* Whole, or not at all. */
static int show_save(struct peer *p, const char *kind, const char *suffix, struct str bytes,
		     struct err *e)
{
	char name[64];
	autoclose int folder = open_folder(p, e);
	autoclose int fd = folder < 0 ? -1 : open_new(p, folder, kind, suffix, name, e);

	if (fd < 0)
		return -1;
	if (file_write_fd(fd, name, bytes, e) < 0) {
		err_wrap(e, "%.120s", p->o->out);
		unlinkat(folder, name, 0);
		return -1;
	}
	printf(" saved as %s/%s", p->o->out, name);
	return 0;
}

/* "[image image/png, 70 bytes] saved as …" */
static int show_data(struct peer *p, const char *kind, struct str base64, struct str mime,
		     struct err *e)
{
	autobuf struct buf bytes = BUF_INIT(DATA_MAX);
	int r = base64_decode(&bytes, base64, e);

	printf("[%s ", kind);
	safe_short(stdout, mime.n > 0 ? mime : STR_LIT("of no type"), 100);
	if (r < 0) {
		printf(", not base64]\n");
		return 0;
	}
	printf(", %zu bytes]", bytes.n);
	if (p->o->out)
		r = show_save(p, kind, suffix_of(mime, false), buf_str(&bytes), e);
	putchar('\n');
	return r;
}

/* ---- content ------------------------------------------------------------------------------- */

int peer_show_resource(struct peer *p, const struct json_val *v, struct err *e)
{
	struct str text = json_str(json_get(v, "text")), mime = json_str(json_get(v, "mimeType"));
	int r = 0;

	if (!text.p)
		return show_data(p, "resource", json_str(json_get(v, "blob")), mime, e);
	if (!p->o->out) {
		safe_text(stdout, text, 0);
		return 0;
	}
	printf("[resource, %zu bytes]", text.n);
	r = show_save(p, "resource", suffix_of(mime, true), text, e);
	putchar('\n');
	return r;
}

static int show_text(struct peer *p, const struct json_val *block, struct err *e)
{
	safe_text(stdout, json_str(json_get(block, "text")), 0);
	return 0;
}

static int show_image(struct peer *p, const struct json_val *block, struct err *e)
{
	return show_data(p, "image", json_str(json_get(block, "data")),
			 json_str(json_get(block, "mimeType")), e);
}

static int show_audio(struct peer *p, const struct json_val *block, struct err *e)
{
	return show_data(p, "audio", json_str(json_get(block, "data")),
			 json_str(json_get(block, "mimeType")), e);
}

static int show_embedded(struct peer *p, const struct json_val *block, struct err *e)
{
	const struct json_val *resource = json_get(block, "resource");

	fputs("[resource ", stdout);
	safe_short(stdout, json_str(json_get(resource, "uri")), 2048);
	fputs("]\n", stdout);
	return peer_show_resource(p, resource, e);
}

static int show_link(struct peer *p, const struct json_val *block, struct err *e)
{
	fputs("[link ", stdout);
	safe_short(stdout, json_str(json_get(block, "uri")), 2048);
	fputs("]  ", stdout);
	safe_short(stdout, json_str(json_get(block, "name")), 200);
	putchar('\n');
	safe_text(stdout, json_str(json_get(block, "description")), 2);
	return 0;
}

static const struct {
	const char *type;
	int (*show)(struct peer *p, const struct json_val *block, struct err *e);
} kinds[] = {
	{ "text", show_text },	       { "image", show_image },	       { "audio", show_audio },
	{ "resource", show_embedded }, { "resource_link", show_link },
};

int peer_show_content(struct peer *p, const struct json_val *block, struct err *e)
{
	struct str type = json_str(json_get(block, "type"));

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (str_is(type, kinds[i].type))
			return kinds[i].show(p, block, e);
	}
	if (safe_json_lines(stdout, block, 0, e) < 0)
		return -1;
	putchar('\n');
	return 0;
}

/* ---- lists --------------------------------------------------------------------------------- */

void peer_show_head(struct str name, const struct json_val *thing, const char *notes)
{
	struct str title = json_str(json_get(thing, "title"));

	safe_short(stdout, name, 2048);
	if (title.n > 0 && !str_eq(title, name)) {
		fputs("  ", stdout);
		safe_short(stdout, title, 200);
	}
	printf("%s\n", notes);
	safe_text(stdout, json_str(json_get(thing, "description")), 4);
}

static void show_choices(const struct json_val *choices)
{
	struct json_iter it = json_iter(choices);
	const char *before = ": ";
	struct err e;

	while (json_next(&it) && it.index < CHOICES_MAX) {
		fputs(before, stdout);
		before = ", ";
		if (json_type(it.val) == JSON_STR)
			safe_short(stdout, json_str(it.val), 60);
		else if (safe_json(stdout, it.val, &e) < 0)
			fputs(e.msg, stdout);
	}
	if (json_len(choices) > CHOICES_MAX)
		fputs(", …", stdout);
}

void peer_show_argument(struct str name, const char *type, bool required, struct str doc,
			const struct json_val *choices)
{
	fputs("      ", stdout);
	safe_short(stdout, name, 200);
	printf(" (%s%s", type, required ? ", required" : "");
	show_choices(choices);
	putchar(')');
	if (doc.n > 0)
		fputs("  ", stdout);
	safe_short(stdout, doc, 400);
	putchar('\n');
}

static const char *name_at(const void *of, size_t i)
{
	const struct mcp_listed *l = of;
	struct str name = json_str(json_get(l->items[i], "name"));

	return name.p && !memchr(name.p, '\0', name.n) ? name.p : "";
}

/* The gateway lists SERVER__TOOL, and has tools of its own. */
struct str peer_own_name(const struct peer *p, const struct json_val *tool)
{
	struct str name = json_str(json_get(tool, "name"));
	size_t n = p->module ? strlen(p->module) : 0;

	if (!n)
		return name;
	return str_starts(name, p->module) && name.n > n + 2 && memcmp(name.p + n, "__", 2) == 0
		     ? (struct str){ name.p + n + 2, name.n - n - 2 }
		     : STR_NONE;
}

const struct json_val *peer_find(const struct peer *p, const struct mcp_listed *l, const char *name,
				 struct err *e)
{
	const char *meant;

	for (size_t i = 0; i < l->n; i++) {
		if (str_is(json_str(json_get(l->items[i], "name")), name) ||
		    str_is(peer_own_name(p, l->items[i]), name))
			return l->items[i];
	}
	meant = option_nearest(name, name_at, l, l->n);
	if (meant)
		err_set(e, ERR_INVALID, "the server has no tool %.60s; did you mean %.60s?", name,
			meant);
	else
		err_set(e, ERR_INVALID, "the server has no tool %.60s; 'holt mcp tools' lists them",
			name);
	return NULL;
}

void peer_print_json(struct peer *p, const struct json_val *result, enum peer_end how)
{
	struct err e = ERR_INIT;

	if (safe_json(stdout, result, &e) < 0) {
		peer_fail(p, PEER_OWN, &e);
		return;
	}
	putchar('\n');
	peer_end(p, how);
}

void peer_print_written(struct peer *p, struct json_writer *w)
{
	struct err e = ERR_INIT;

	if (json_write_done(w, &e) < 0) {
		peer_fail(p, PEER_OWN, &e);
		return;
	}
	safe_json_puts(stdout, buf_str(w->buf));
	peer_end(p, PEER_OK);
}
