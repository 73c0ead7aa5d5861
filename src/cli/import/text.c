/* Texts of other clients: their variables, and secrets in them. */
#include <stdlib.h>

#include "cli/import/internal.h"
#include "config/variables.h"
#include "guard/redact/redact.h"

enum { TEXT_MAX = 64 << 10, SECRET_NAME_MAX = 64 };

/* ---- variables ----------------------------------------------------------------------------- */

static int text_put(struct buf *to, struct str s, struct err *e)
{
	return buf_add(to, s.p, s.n, e);
}

/* As it is: "${" is no variable there. */
static int text_put_literal(struct buf *to, struct str s, struct err *e)
{
	for (size_t i = 0; i < s.n; i++) {
		bool open = s.p[i] == '$' && i + 1 < s.n && s.p[i + 1] == '{';

		if (buf_add(to, "$$", open ? 2 : 1, e) < 0)
			return -1;
		if (!open)
			to->p[to->n - 1] = s.p[i];
	}
	return 0;
}

static int text_put_input(struct import *im, struct buf *to, struct str whole, struct str id)
{
	const struct json_val *input = import_input(im, id);
	struct str type = json_str(json_get(input, "type"));

	if (json_bool(json_get(input, "password"))) {
		import_note(im,
			    "${input:%.*s} becomes ${secret:%.*s}: store it with "
			    "holt secret set %.*s",
			    STR_ARG(id), STR_ARG(id), STR_ARG(id));
		return buf_addf(to, im->e, "${secret:%.*s}", STR_ARG(id));
	}
	if (input && !str_is(type, "promptString") && !str_is(type, "pickString"))
		import_note(im, "${input:%.*s} is of the type \"%.*s\": a person is asked for it",
			    STR_ARG(id), STR_CUT(type, 40));
	if (!import_has(&im->used, id) && import_add(im, &im->used, STR_NONE, id) < 0)
		return -1;
	return text_put(to, whole, im->e);
}

/* What editors replace in their files, and nothing else has. */
static bool text_is_editors(struct str name)
{
	static const char *const names[] = {
		"file",
		"fileBasename",
		"fileBasenameNoExtension",
		"fileDirname",
		"fileExtname",
		"fileDirnameBasename",
		"relativeFile",
		"relativeFileDirname",
		"fileWorkspaceFolder",
		"lineNumber",
		"columnNumber",
		"selectedText",
		"execPath",
		"defaultBuildTask",
		"extensionInstallFolder",
		"workspaceFolders",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (str_is(name, names[i]))
			return true;
	}
	return false;
}

/* The value of a variable that is known here; STR_NONE: it is not. */
static struct str text_known(const struct import *im, struct str name)
{
	static const char *const folders[] = { "workspaceFolder", "workspaceRoot", "cwd" };
	const struct str f = im->o->folder;
	const char *slash = f.n ? memrchr(f.p, '/', f.n) : NULL;

	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		if (str_is(name, folders[i]))
			return f;
	}
	if (str_is(name, "workspaceFolderBasename"))
		return slash ? (struct str){ slash + 1, (size_t)(f.p + f.n - slash) - 1 } : f;
	if (str_is(name, "/") || str_is(name, "pathSeparator"))
		return STR_LIT("/");
	return STR_NONE;
}

/* ${…}, from the first byte to the last. */
static int text_put_variable(struct import *im, const char *what, struct str whole, struct buf *to)
{
	struct str in = { whole.p + 2, whole.n - 3 }, rest = whole;
	struct str known = text_known(im, in);
	struct config_part part;
	struct err none;

	if (known.p)
		return text_put_literal(to, known, im->e);
	if (str_is(in, "userHome"))
		return text_put(to, STR_LIT("${HOME}"), im->e);
	if (text_is_editors(in) || config_part_next(&rest, &part, &none) <= 0 || rest.n ||
	    part.kind == CONFIG_PART_SECRET) {
		import_note(im, "%s: %.*s has no counterpart, and is text now", what,
			    STR_CUT(whole, 80));
		return text_put_literal(to, whole, im->e);
	}
	return part.kind == CONFIG_PART_INPUT ? text_put_input(im, to, whole, part.text)
					      : text_put(to, whole, im->e);
}

static size_t text_name(struct str s)
{
	size_t n = 0;

	while (n < s.n && ((s.p[n] >= 'a' && s.p[n] <= 'z') || (s.p[n] >= 'A' && s.p[n] <= 'Z') ||
			   s.p[n] == '_' || (n > 0 && s.p[n] >= '0' && s.p[n] <= '9')))
		n++;
	return n;
}

/* What begins at the front of s, as the client writes it: how long it is, and it was put; 0: that
 * is no variable; -1. */
static int text_take(struct import *im, const char *what, struct str s, struct buf *to)
{
	enum foreign_variables of = im->o->client->variables;
	const char *end = memchr(s.p, '}', s.n);
	size_t n = end ? (size_t)(end - s.p) + 1 : 0;

	if (of == FOREIGN_NONE)
		return 0;
	if (n > 3 && str_starts(s, "${"))
		return text_put_variable(im, what, (struct str){ s.p, n }, to) < 0 ? -1 : (int)n;
	n = text_name((struct str){ s.p + 1, s.n - 1 });
	if (n == 0)
		return 0;
	if (of != FOREIGN_SHELL) {
		import_note(im, "%s: $%.*s is text there; a variable has braces", what,
			    n < 60 ? (int)n : 60, s.p + 1);
		return 0;
	}
	return buf_addf(to, im->e, "${%.*s}", (int)n, s.p + 1) < 0 ? -1 : (int)n + 1;
}

int import_text(struct import *im, const char *what, struct str text, struct str *ret)
{
	autobuf struct buf to = BUF_INIT(TEXT_MAX), variable = BUF_INIT(TEXT_MAX);
	size_t from = 0, at = 0;

	if (text.n > TEXT_MAX / 4)
		return err_set(im->e, ERR_TOO_LARGE, "%s is too long", what);
	while (at < text.n) {
		int n = text.p[at] != '$'
			      ? 0
			      : text_take(im, what, (struct str){ text.p + at, text.n - at },
					  &variable);

		if (n < 0 ||
		    (n > 0 &&
		     (text_put_literal(&to, (struct str){ text.p + from, at - from }, im->e) < 0 ||
		      text_put(&to, buf_str(&variable), im->e) < 0)))
			return -1;
		at += n > 0 ? (size_t)n : 1;
		from = n > 0 ? at : from;
		variable.n = 0;
	}
	if (text_put_literal(&to, (struct str){ text.p + from, at - from }, im->e) < 0)
		return -1;
	*ret = (struct str){ arena_dup(im->arena, buf_str(&to), im->e), to.n };
	return ret->p ? 0 : -1;
}

int import_command(struct import *im, const char *what, struct str text, struct str *ret)
{
	static const char *const homes[] = { "${HOME}", "${env:HOME}", "~/" };
	const char *home = getenv("HOME");
	size_t n;

	if (import_text(im, what, text, ret) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(homes); i++) {
		n = strlen(homes[i]) - (homes[i][0] == '~');
		if (!home || *home != '/' || !str_starts(*ret, homes[i]))
			continue;
		ret->p = arena_printf(im->arena, im->e, "%s%.*s", home, (int)(ret->n - n),
				      ret->p + n);
		ret->n = ret->p ? strlen(ret->p) : 0;
		return ret->p ? 0 : -1;
	}
	return 0;
}

/* ---- secrets ------------------------------------------------------------------------------- */

/* "github.API_KEY" */
static void secret_name(const struct import *im, struct str name, char ret[SECRET_NAME_MAX + 1])
{
	size_t n = 0;

	for (size_t i = 0; i < im->server->name.n && n < 32; i++)
		ret[n++] = im->server->name.p[i];
	ret[n++] = '.';
	for (size_t i = 0; i < name.n && n < SECRET_NAME_MAX; i++) {
		char c = name.p[i];
		bool fits = text_name((struct str){ &c, 1 }) || (c >= '0' && c <= '9') || c == '-';

		ret[n++] = fits ? c : '-';
	}
	ret[n] = '\0';
}

/* Each mark of the redactor becomes the secret. */
static int secret_refer(struct import *im, struct str marked, const char *name, struct str *ret)
{
	static const char mark[] = "[REDACTED:";
	autobuf struct buf to = BUF_INIT(2 * TEXT_MAX);
	const char *at, *end;

	while ((at = marked.n ? memmem(marked.p, marked.n, mark, strlen(mark)) : NULL)) {
		size_t before = (size_t)(at - marked.p);

		end = memchr(at, ']', marked.n - before);
		if (!end)
			break;
		if (text_put(&to, (struct str){ marked.p, before }, im->e) < 0 ||
		    buf_addf(&to, im->e, "${secret:%s}", name) < 0)
			return -1;
		marked.n -= (size_t)(end + 1 - marked.p);
		marked.p = end + 1;
	}
	if (text_put(&to, marked, im->e) < 0)
		return -1;
	*ret = (struct str){ arena_dup(im->arena, buf_str(&to), im->e), to.n };
	return ret->p ? 0 : -1;
}

/* What a README has in place of a secret: nothing, <key>, xxx, … */
static bool secret_is_blank(struct str text)
{
	size_t i = 0;

	if (text.n > 2 && text.p[0] == '<' && text.p[text.n - 1] == '>')
		return true;
	while (i < text.n && strchr("xX.*", text.p[i]))
		i++;
	return i == text.n;
}

/* By the name of its place, where the redactor sees none: a key in the form of a UUID, say. */
static bool secret_by_name(struct str before, struct str text)
{
	static const char *const words[] = { "token",	   "secret",	 "password",
					     "passwd",	   "api_key",	 "apikey",
					     "api-key",	   "access_key", "private_key",
					     "cookie",	   "credential", "authorization",
					     "access-key", "private-key" },
				 *const ends[] = { "_key", "-key", "_pat" };
	char name[64];
	size_t n = 0;
	bool is = false;

	while (n < before.n && n < sizeof(name) - 1 && !strchr("=:", before.p[n])) {
		char c = before.p[n];

		name[n++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
	}
	name[n] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		is = is || strstr(name, words[i]);
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		is = is || (n > 4 && strcmp(name + n - 4, ends[i]) == 0);
	return is && !strstr(name, "public") &&
	       (secret_is_blank(text) ||
		(text.n >= 8 && *text.p != '/' && !memmem(text.p, text.n, "${", 2)));
}

int import_value(struct import *im, const char *what, struct str before, struct str name,
		 struct str text, struct str *ret)
{
	autobuf struct buf whole = BUF_INIT(2 * TEXT_MAX), marked = BUF_INIT(16 * TEXT_MAX);
	struct redact_part part = { .keep_length = false };
	char secret[SECRET_NAME_MAX + 1];
	struct str without;
	int found;

	if (import_text(im, what, text, ret) < 0)
		return -1;
	if (text_put(&whole, before, im->e) < 0 || text_put(&whole, *ret, im->e) < 0)
		return -1;
	part.text = buf_str(&whole);
	found = redact_text(im->o->redactor, &part, &marked, im->e);
	if (found < 0)
		return -1;
	without = found && marked.n >= before.n
			? (struct str){ marked.p + before.n, marked.n - before.n }
			: STR_LIT("[REDACTED:]");
	if (!found && !secret_by_name(before, *ret))
		return 0;
	secret_name(im, name, secret);
	import_note(im,
		    "%s has a secret, which is ${secret:%s} now: store it with holt secret set %s",
		    what, secret, secret);
	return secret_refer(im, without, secret, ret);
}
