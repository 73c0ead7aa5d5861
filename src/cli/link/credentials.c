#include "cli/link/credentials.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/common/file.h"
#include "cli/common/home.h"
#include "cli/common/tty.h"
#include "http/client/url.h"
#include "json/document/json.h"
#include "json/document/write.h"

/* READ_MAX: room for the longest token and what is read at once. */
enum { TOKEN_MAX = 4096, READ_MAX = 16 << 10, FILE_MAX = 64 << 10 };
#define NAME "credentials.json"

/* ---- one token ----------------------------------------------------------------------------- */

/* A token has to fit in an HTTP header, without a space. */
static struct secret *token_new(struct str text, const char *where, struct err *e)
{
	bool ok = text.n > 0 && text.n <= TOKEN_MAX;

	for (size_t i = 0; ok && i < text.n; i++)
		ok = text.p[i] > ' ' && text.p[i] < 0x7f;
	if (ok)
		return secret_new(text, e);
	err_set(e, ERR_INVALID, "%s has no token: 1 to %d characters of ASCII without spaces",
		where, TOKEN_MAX);
	return NULL;
}

struct secret *token_read(const char *file, struct err *e)
{
	struct buf text = BUF_INIT(READ_MAX);
	struct secret *token = NULL;

	if (file ? buf_reserve(&text, READ_MAX, e) && file_read(file, &text, e) == 0
		 : tty_read_secret("Token: ", &text, e) == 0) {
		while (text.n > 0 && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
			text.n--;
		token = token_new(buf_str(&text), file ? file : "standard input", e);
	}
	buf_wipe(&text);
	return token;
}

/* ---- credentials.json ---------------------------------------------------------------------- */

static int find_file(bool make, char ret[PATH_MAX], struct err *e)
{
	const char *dir = getenv("MITOS_CONFIG_DIR");

	if (!dir || !*dir)
		return home_settings(NAME, make, ret, e);
	if (snprintf(ret, PATH_MAX, "%s/" NAME, dir) >= PATH_MAX)
		return err_set(e, ERR_INVALID, "MITOS_CONFIG_DIR is too long");
	if (make && mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "make %.120s", dir);
	return 0;
}

/* *ret NULL: there is none that can be read. */
static int credentials_load(struct json_doc **ret, struct err *e)
{
	const struct json_options o = { .bytes = FILE_MAX, .secret = true };
	struct buf text = BUF_INIT(FILE_MAX);
	char path[PATH_MAX];
	struct err why = ERR_INIT;
	autoclose int fd = -1;
	struct stat st;

	*ret = NULL;
	if (find_file(false, path, &why) < 0)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return err_set(e, ERR_DENIED, "%.120s belongs to another user", path);
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		return err_set(e, ERR_DENIED, "others may read %.120s: chmod 600 it", path);
	if (file_read_fd(fd, path, &text, &why) == 0)
		*ret = json_parse(buf_str(&text), &o, &why);
	buf_wipe(&text);
	if (!*ret)
		log_warn("%.120s is not used: %s", path, why.msg);
	return 0;
}

char *credentials_server(void)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	struct err e = ERR_INIT;
	struct str server;

	if (credentials_load(&doc, &e) < 0)
		return NULL;
	server = json_str(json_get(json_root(doc), "server"));
	return server.n ? strndup(server.p, server.n) : NULL;
}

/* A token that was stored for one server is for no other. */
static int find_stored(const char *server, struct secret **ret, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	struct str token, of;
	autofree char *its = NULL;

	if (credentials_load(&doc, e) < 0)
		return -1;
	token = json_str(json_get(json_root(doc), "token"));
	of = json_str(json_get(json_root(doc), "server"));
	its = of.n ? strndup(of.p, of.n) : NULL;
	if (!token.n || (of.n && (!its || !http_url_same_origin(its, server))))
		return 0;
	*ret = token_new(token, NAME, e);
	return *ret ? 0 : -1;
}

int credentials_write(const char *server, const struct secret *token, char ret_path[PATH_MAX],
		      struct err *e)
{
	struct buf text = BUF_INIT(FILE_MAX);
	struct json_writer w = json_writer(&text);
	struct file_out out;
	bool whole;

	if (find_file(true, ret_path, e) < 0)
		return -1;
	if (file_out_open(&out, ret_path, e) < 0)
		return -1;
	json_write_object(&w);
	json_write_key(&w, "server");
	json_write_text(&w, server);
	json_write_key(&w, "token");
	json_write_str(&w, secret_expose(token, "stored for its owner"));
	json_write_object_end(&w);
	whole = file_out_lock(&out, e) == 0 && json_write_done(&w, e) == 0 &&
		file_write_fd(out.fd, ret_path, buf_str(&text), e) == 0;
	if (whole && out.folder >= 0 && fchmod(out.fd, 0600) < 0) {
		err_sys(e, errno, "%.120s", ret_path);
		whole = false;
	}
	buf_wipe(&text);
	return file_out_end(&out, whole, e);
}

/* ---- which of them ------------------------------------------------------------------------- */

int token_find(const struct token_options *o, const char *server, struct secret **ret,
	       const char **ret_from, struct err *e)
{
	static const char *const variables[] = { "MITOS_API_KEY", "HOLT_API_KEY" };

	*ret = NULL;
	*ret_from = "none";
	if (o->token && o->file)
		return err_set(e, ERR_INVALID, "--token and --token-file exclude each other");
	if (o->token) {
		*ret = token_new(str_of(o->token), "--token", e);
		*ret_from = "--token";
		memset((char *)o->token, 'x', strlen(o->token));
		return *ret ? 0 : -1;
	}
	if (o->file) {
		*ret = token_read(o->file, e);
		*ret_from = "--token-file";
		return *ret ? 0 : -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
		const char *said = getenv(variables[i]);

		if (!said || !*said)
			continue;
		*ret = token_new(str_of(said), variables[i], e);
		*ret_from = variables[i];
		return *ret ? 0 : -1;
	}
	if (find_stored(server, ret, e) < 0)
		return -1;
	if (*ret)
		*ret_from = NAME;
	return 0;
}
