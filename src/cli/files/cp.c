/*
 * `holt cp`: copies files and directories to or from a sandbox of the hub, like docker cp. If the
 * destination is a directory, they are copied into it, else they get its name. SRC/. means the
 * contents of SRC. Both ways stream a tar archive; "-" is that archive itself.
 */
#include "cli/files/cp.h"

#include <stdio.h>

#include "cli/common/safe.h"
#include "cli/common/verb.h"

/* ---- what both ways share ------------------------------------------------------------------ */

int cp_url(char ret[CP_URL_MAX], const char *name, const char *path, struct err *e)
{
	if (hub_link_path(ret, CP_URL_MAX, name, "/archive", e) < 0)
		return -1;
	return hub_link_query(ret, CP_URL_MAX, "path", path, e);
}

int cp_look(struct hub_link *l, const struct cp_end *at, enum cp_kind *ret, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX);
	struct json_writer w = json_writer(&text);

	json_write_object(&w);
	hub_link_text(&w, "sandbox", at->name);
	hub_link_text(&w, "path", at->path);
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	*ret = CP_NOTHING;
	if (hub_link_ask(l, "POST", "/v1/files/stat", buf_str(&text), &doc, e) < 0)
		return -1;
	*ret = json_bool(json_get(json_root(doc), "is_dir")) ? CP_DIRECTORY : CP_FILE;
	return 0;
}

void cp_own_name(const char *path, char ret[CP_PATH_MAX])
{
	size_t n = strlen(path), from;

	while (n > 1 && path[n - 1] == '/')
		n--;
	for (from = n; from > 0 && path[from - 1] != '/'; from--)
		;
	snprintf(ret, CP_PATH_MAX, "%.*s", (int)(n - from), path + from);
	if (!*ret || strcmp(ret, "..") == 0)
		snprintf(ret, CP_PATH_MAX, ".");
}

int cp_place(const char *path, enum cp_kind is, const char *own, bool of_directory, char *ret_dir,
	     char *ret_name, struct err *e)
{
	size_t n = strlen(path);
	bool slash = n > 0 && path[n - 1] == '/';

	if (n == 0 || n >= CP_PATH_MAX)
		return err_set(e, ERR_INVALID, "a path is empty or too long");
	if (is == CP_DIRECTORY) {
		snprintf(ret_dir, CP_PATH_MAX, "%s", path);
		snprintf(ret_name, CP_PATH_MAX, "%s", own);
		return 0;
	}
	if (is == CP_FILE && of_directory)
		return err_set(e, ERR_NOT_A_FILE,
			       "%.160s is a file: a directory can't take its place", path);
	if (slash && !of_directory)
		return err_set(e, ERR_PATH_NOT_FOUND, "there is no directory %.160s", path);
	cp_own_name(path, ret_name);
	while (n > 1 && path[n - 1] == '/')
		n--;
	while (n > 0 && path[n - 1] != '/')
		n--;
	while (n > 1 && path[n - 1] == '/')
		n--;
	snprintf(ret_dir, CP_PATH_MAX, "%.*s", n ? (int)n : 1, n ? path : ".");
	return 0;
}

void cp_tell_left_out(const char *text)
{
	if (!*text)
		return;
	fputs("holt: left out what is no file, directory or link, or can't be read: ", stderr);
	safe_line(stderr, str_of(text));
	fputc('\n', stderr);
}

/* ---- the verb ------------------------------------------------------------------------------ */

/* "NAME:PATH" is in a sandbox. A path with '/' before the ':' is local. */
static int read_end(const char *text, struct cp_end *ret, struct err *e)
{
	size_t n = strcspn(text, ":/");

	*ret = (struct cp_end){ .path = text };
	if (text[n] != ':')
		return 0;
	if (n == 0 || n >= sizeof(ret->name))
		return err_set(e, ERR_INVALID, "'%.80s' names no sandbox", text);
	memcpy(ret->name, text, n);
	ret->path = text[n + 1] ? text + n + 1 : ".";
	return 0;
}

static int cp_run(const struct verb_input *in, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	struct cp_end from, to;

	if (read_end(in->operands[0], &from, e) < 0 || read_end(in->operands[1], &to, e) < 0)
		return cli_wrong_usage(in->verb, e);
	if (!from.name[0] == !to.name[0]) {
		err_set(e, ERR_INVALID, "exactly one of both must be NAME:PATH, in a sandbox");
		return cli_wrong_usage(in->verb, e);
	}
	l = hub_link_open(e);
	if (!l)
		return -1;
	return from.name[0] ? cp_down(l, &from, to.path, e) : cp_up(l, from.path, &to, e);
}

const struct verb cp_verb = {
	.name = "cp",
	.usage = "NAME:PATH DEST | SOURCE NAME:PATH",
	.doc = "Copy files and directories to or from a sandbox of the hub.",
	.more = "In a directory the copy keeps its name; any other destination is its new name.\n"
		"SOURCE/. means its contents. As DEST or SOURCE, - is a tar archive on standard\n"
		"output or input; in it, a directory has its name.",
	.page = "holt-sandbox",
	.options = &verb_bare,
	.size = sizeof(struct verb_options),
	.min_operands = 2,
	.run = cp_run,
	.fail = hub_link_fail,
};
