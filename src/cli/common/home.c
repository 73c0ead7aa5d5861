#include "cli/common/home.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/id.h"

enum { TOKEN_MIN = 16, TOKEN_MAX = 512 };

/* ---- folders ------------------------------------------------------------------------------- */

/* An absolute path from the environment, or NULL. XDG requires that relative ones are ignored. */
static const char *folder(const char *variable)
{
	const char *value = getenv(variable);

	return value && value[0] == '/' ? value : NULL;
}

/* The path alone. */
static int home_place(const char *base, const char *below, const char *name, char ret[PATH_MAX],
		      struct err *e)
{
	int n = snprintf(ret, PATH_MAX, "%s%s/%s", base, below, name);

	return n < 0 || n >= PATH_MAX
		     ? err_set(e, ERR_INVALID, "the path of Holt's folder is too long")
		     : 0;
}

/* Another user who may write there could put links in it, through which we would write. */
static int check_own(const char *folder, struct err *e)
{
	struct stat st;

	if (stat(folder, &st) < 0)
		return err_sys(e, errno, "look at %.120s", folder);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return err_set(e, ERR_FOLDER, "%.120s belongs to another user (uid %u)", folder,
			       (unsigned)st.st_uid);
	return (st.st_mode & 022) == 0
		     ? 0
		     : err_set(e, ERR_FOLDER, "others may write to %.120s (mode %04o)", folder,
			       (unsigned)st.st_mode & 07777);
}

/* With the folder made, and nobody else's. */
static int join(const char *base, const char *below, const char *name, char ret[PATH_MAX],
		struct err *e)
{
	char *slash;
	int rc;

	if (home_place(base, below, name, ret, e) < 0)
		return -1;
	slash = ret + strlen(ret) - strlen(name) - 1;
	*slash = '\0';
	rc = path_make(ret, e) < 0 ? -1 : check_own(ret, e);
	*slash = '/';
	return rc;
}

typedef int (*join_fn)(const char *base, const char *below, const char *name, char ret[PATH_MAX],
		       struct err *e);

/* In HOLT_HOME, else in holt/ of the XDG folder, else below HOME; 1: none of these is set. */
static int in_first(const char *xdg, const char *below, const char *name, join_fn to,
		    char ret[PATH_MAX], struct err *e)
{
	if (folder("HOLT_HOME"))
		return to(folder("HOLT_HOME"), "", name, ret, e);
	if (folder(xdg))
		return to(folder(xdg), "/holt", name, ret, e);
	return folder("HOME") ? to(folder("HOME"), below, name, ret, e) : 1;
}

static int in_data(const char *name, join_fn to, char ret[PATH_MAX], struct err *e)
{
	const char *set = getenv("HOLT_HOME");
	int rc;

	if (set && *set && *set != '/')
		return err_set(e, ERR_INVALID, "HOLT_HOME is not an absolute path");
	rc = in_first("XDG_DATA_HOME", "/.local/share/holt", name, to, ret, e);
	if (rc <= 0)
		return rc;
	if (geteuid() == 0)
		return to("/var/lib/holt", "", name, ret, e);
	return err_set(e, ERR_INVALID, "neither HOLT_HOME nor HOME is set");
}

int home_file(const char *name, char ret[PATH_MAX], struct err *e)
{
	return in_data(name, join, ret, e);
}

int home_where(const char *name, char ret[PATH_MAX], struct err *e)
{
	return in_data(name, home_place, ret, e);
}

int home_audit(char path[PATH_MAX], const char **ret, struct err *e)
{
	char data[PATH_MAX];
	struct err why = ERR_INIT;

	*ret = NULL;
	if (home_file("audit", path, &why) < 0 && why.code == ERR_FOLDER) {
		*e = why;
		return -1;
	}
	/* On a full disk the path is given all the same: calls must be refused there. */
	if ((why.code != ERR_NONE && why.code != ERR_STORE_FULL) ||
	    home_where(".", data, &why) < 0 || home_where("audit", path, &why) < 0)
		return 0;
	if (access(data, W_OK) == 0 || errno == ENOENT)
		*ret = path;
	return 0;
}

static int in_runtime(const char *name, join_fn to, char ret[PATH_MAX], struct err *e)
{
	if (!folder("HOLT_HOME") && folder("XDG_RUNTIME_DIR"))
		return to(folder("XDG_RUNTIME_DIR"), "/holt", name, ret, e);
	return in_data(name, to, ret, e);
}

static int in_cache(const char *name, join_fn to, char ret[PATH_MAX], struct err *e)
{
	int rc = in_first("XDG_CACHE_HOME", "/.cache/holt", name, to, ret, e);

	return rc <= 0 ? rc : err_set(e, ERR_INVALID, "neither HOLT_HOME nor HOME is set");
}

static int in_config(const char *name, join_fn to, char ret[PATH_MAX], struct err *e)
{
	int rc = in_first("XDG_CONFIG_HOME", "/.config/holt", name, to, ret, e);

	return rc <= 0 ? rc : to("/etc/holt", "", name, ret, e);
}

int home_config(const char *said, char ret[PATH_MAX], bool *must, struct err *e)
{
	const char *set = getenv("HOLT_CONFIG");

	if (!said && set && *set)
		said = set;
	*must = said != NULL;
	if (!said)
		return in_config("config.json", home_place, ret, e);
	if (snprintf(ret, PATH_MAX, "%s", said) >= PATH_MAX)
		return err_set(e, ERR_INVALID, "the path of the configuration is too long");
	return 0;
}

int home_settings(const char *name, bool make, char ret[PATH_MAX], struct err *e)
{
	return in_config(name, make ? join : home_place, ret, e);
}

int home_socket(char ret[PATH_MAX], struct err *e)
{
	return in_runtime("holt.sock", join, ret, e);
}

int home_cache(const char *name, char ret[PATH_MAX], struct err *e)
{
	return in_cache(name, join, ret, e);
}

size_t home_folders(char ret[HOME_FOLDERS][PATH_MAX])
{
	int (*const in[HOME_FOLDERS])(const char *name, join_fn to, char ret[PATH_MAX],
				      struct err *e) = { in_data, in_runtime, in_cache, in_config };
	struct err homeless = ERR_INIT;
	size_t n = 0;

	for (size_t i = 0; i < HOME_FOLDERS; i++) {
		if (in[i]("", home_place, ret[n], &homeless) < 0)
			continue;
		ret[n][strlen(ret[n]) - 1] = '\0'; /* the slash before no name */
		n++;
	}
	return n;
}

/* ---- the token ----------------------------------------------------------------------------- */

/* Creates the file with the token. If another process was faster, its file stays. */
static int write_token(const char *path, struct err *e)
{
	AUTO(secret_free) struct secret *token = secret_random("holt_", e);
	char temporary[PATH_MAX + ID_MAX], id[ID_MAX];
	autoclose int fd = -1;
	struct str text;
	int failed = 0;

	if (!token)
		return -1;
	id_make(id, "new");
	snprintf(temporary, sizeof(temporary), "%s.%s", path, id);
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(e, errno, "make %.120s", path);
	text = secret_expose(token, "written to its file");
	if (dprintf(fd, "%.*s\n", STR_ARG(text)) != (int)text.n + 1 || fsync(fd) < 0 ||
	    (link(temporary, path) < 0 && errno != EEXIST))
		failed = errno ? errno : EIO;
	unlink(temporary);
	return failed ? err_sys(e, failed, "write %.120s", path) : 0;
}

static int open_token(const char *path, struct err *e)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return err_sys(e, errno, "open %.120s", path);
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "look at %.120s", path);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
		return err_set(e, ERR_DENIED,
			       "%.120s must belong to you and be closed to others "
			       "(chmod 600); or remove it",
			       path);
	return take_fd(&fd);
}

static bool is_token(struct str text)
{
	static const char chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._~+/=";

	for (size_t i = 0; i < text.n; i++) {
		if (!text.p[i] || !strchr(chars, text.p[i]))
			return false;
	}
	return text.n >= TOKEN_MIN && text.n <= TOKEN_MAX;
}

static struct secret *read_token(const char *path, struct err *e)
{
	autoclose int fd = open_token(path, e);
	struct secret *token = NULL;
	char text[TOKEN_MAX + 2];
	ssize_t n;

	if (fd < 0)
		return NULL;
	n = read(fd, text, sizeof(text));
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	if (n < 0 || !is_token((struct str){ text, (size_t)n }))
		err_set(e, ERR_INVALID,
			"%.120s holds no token: a line of %d to %d letters, digits and -._~+/=; "
			"remove it, and a new one is made",
			path, TOKEN_MIN, TOKEN_MAX);
	else
		token = secret_new((struct str){ text, (size_t)n }, e);
	explicit_bzero(text, sizeof(text));
	return token;
}

struct secret *home_token(struct err *e)
{
	char path[PATH_MAX];

	if (home_file("token", path, e) < 0)
		return NULL;
	if (access(path, F_OK) < 0 && errno == ENOENT && write_token(path, e) < 0)
		return NULL;
	return read_token(path, e);
}

/* Nothing before an @ is a host. */
static bool is_here(const char *url)
{
	static const char *const ours[] = { "http://127.0.0.1",	 "http://localhost",
					    "http://[::1]",	 "https://127.0.0.1",
					    "https://localhost", "https://[::1]" };

	for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
		size_t n = strlen(ours[i]);

		if (strncmp(url, ours[i], n) == 0 && strchr(":/", url[n]))
			return !strchr(url, '@');
	}
	return false;
}

int home_token_for(const char *url, struct secret **ret, bool *ret_own, struct err *e)
{
	const char *said = getenv("HOLT_TOKEN");
	bool has = said && *said;

	if (ret_own)
		*ret_own = !has;
	*ret = has ? secret_new(str_of(said), e) : is_here(url) ? home_token(e) : NULL;
	return *ret || (!has && !is_here(url)) ? 0 : -1;
}
