#include "modules/agent_state.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "config/config.h"

enum { STATE_FILE_MAX = 1 << 20, STATE_DEPTH_MAX = 16 };

int agent_state_folder(const char *images, struct str name, char ret[PATH_MAX], struct err *e)
{
	const char *slash = strrchr(images, '/');
	int n = snprintf(ret, PATH_MAX, "%.*s/" BOX_STATE "/%.*s",
			 slash ? (int)(slash - images) : 0, images,
			 STR_CUT(name, CONFIG_SERVER_NAME_MAX));

	return n >= PATH_MAX ? err_set(e, ERR_INVALID, "the path of the data folder is too long")
			     : 0;
}

/* A path of the preset below the folder, from which no link leads out. -1 with errno. */
static int state_open(const char *folder, struct str path, uint64_t flags, uint64_t mode)
{
	const struct open_how how = { .flags = flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
				      .mode = mode,
				      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	autoclose int dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char below[PATH_MAX];

	snprintf(below, sizeof(below), "%.*s", STR_CUT(path, PATH_MAX - 1));
	return dir < 0 ? -1 : (int)syscall(SYS_openat2, dir, below + 2, &how, sizeof(how));
}

static int state_write(const struct agent_preset_setting *s, const char *folder, struct err *e)
{
	struct str text = s->json.text.n ? s->json.text : s->text;
	autoclose int fd = state_open(folder, s->name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	/* A file that is there is the user's, or the agent's. */
	if (fd < 0 && (errno == EEXIST || errno == ELOOP))
		return 0;
	if (fd < 0 || fd_write(fd, text.p, text.n) < 0 ||
	    fd_write(fd, "\n", s->json.text.n > 0) < 0)
		return err_sys(e, errno, "write %.*s of the agent's state", STR_CUT(s->name, 120));
	return 0;
}

int agent_state_make(const struct agent_preset *p, const char *folder, struct err *e)
{
	char path[PATH_MAX];

	if (path_make(folder, e) < 0)
		return -1;
	for (size_t i = 0; i < p->state.n; i++) {
		if (agent_preset_path(p->state.p[i], folder, path, sizeof(path), e) < 0 ||
		    path_make(path, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < p->settings.n; i++) {
		if (state_write(&p->settings.p[i], folder, e) < 0)
			return -1;
	}
	return 0;
}

ssize_t agent_state_volumes(const struct agent_preset *p, const char *folder, struct arena *a,
			    struct volume to[VOLUMES_MAX], struct err *e)
{
	char host[PATH_MAX], inside[PATH_MAX];
	size_t n = 0;

	if (p->state.n > VOLUMES_MAX)
		return err_set(e, ERR_LIMIT, "more than %d folders of state", VOLUMES_MAX);
	for (; n < p->state.n; n++) {
		if (agent_preset_path(p->state.p[n], folder, host, sizeof(host), e) < 0 ||
		    agent_preset_path(p->state.p[n], AGENT_HOME, inside, sizeof(inside), e) < 0)
			return -1;
		to[n] = (struct volume){ .host = str_of(arena_dup(a, str_of(host), e)),
					 .inside = str_of(arena_dup(a, str_of(inside), e)),
					 .mode = VOLUME_RW_ALL };
		if (!to[n].host.p || !to[n].inside.p)
			return -1;
	}
	return (ssize_t)n;
}

int agent_state_read(const char *folder, struct str path, struct buf *to, struct err *e)
{
	autoclose int fd = state_open(folder, path, O_RDONLY, 0);
	struct stat st;
	ssize_t n = 1;

	if (fd < 0)
		return err_set(
			e, errno == ENOENT || errno == ENOTDIR ? ERR_PATH_NOT_FOUND : ERR_INVALID,
			"%.*s: %s", STR_CUT(path, 120), strerror(errno));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "%.*s is no regular file", STR_CUT(path, 120));
	while (n > 0) {
		char *at = buf_reserve(to, 4096, e);

		if (!at)
			return err_wrap(e, "%.*s", STR_CUT(path, 120));
		n = read(fd, at, 4096);
		buf_advance(to, n > 0 ? (size_t)n : 0);
	}
	return n < 0 ? err_sys(e, errno, "read %.*s", STR_CUT(path, 120)) : 0;
}

int agent_state_remove(const char *folder, struct str path, struct err *e)
{
	const char *slash = memrchr(path.p, '/', path.n);
	struct str above = { path.p, (size_t)(slash - path.p) };
	autoclose int dir = state_open(folder, above, O_RDONLY | O_DIRECTORY, 0);
	char name[NAME_MAX + 1];

	snprintf(name, sizeof(name), "%.*s", (int)(path.n - above.n - 1), slash + 1);
	if (dir >= 0 && unlinkat(dir, name, 0) == 0)
		return 1;
	return errno == ENOENT ? 0 : err_sys(e, errno, "remove %.*s", STR_CUT(path, 120));
}

/* ---- whether settings hold ------------------------------------------------------------------- */

static bool state_same(const struct json_val *want, const struct json_val *is)
{
	if (json_type(want) != json_type(is))
		return false;
	switch (json_type(want)) {
	case JSON_BOOL:
		return json_bool(want) == json_bool(is);
	case JSON_INT:
	case JSON_REAL:
		return json_real(want) == json_real(is);
	case JSON_STR:
		return str_eq(json_str(want), json_str(is));
	default:
		return true;
	}
}

/* Whether all that is wanted is there. A list has to begin with what is wanted. */
static bool state_says(const struct json_val *want, const struct json_val *is,
		       struct json_pointer at, unsigned depth, char where[AGENT_SETTING_WHERE])
{
	struct json_iter it = json_iter(want), has = json_iter(is);
	bool object = json_type(want) == JSON_OBJECT;

	if (!state_same(want, is) || depth > STATE_DEPTH_MAX) {
		snprintf(where, AGENT_SETTING_WHERE, "%s", at.text);
		return false;
	}
	while (json_next(&it)) {
		struct json_pointer below = at;
		const struct json_val *v = NULL;

		if (object)
			json_pointer_key(&below, it.key);
		else
			json_pointer_index(&below, it.index);
		if (object)
			v = json_get_str(is, it.key);
		else if (json_next(&has))
			v = has.val;
		if (!state_says(it.val, v, below, depth + 1, where))
			return false;
	}
	return true;
}

int agent_state_check(const struct agent_preset_setting *s, const char *folder,
		      char where[AGENT_SETTING_WHERE], struct err *e)
{
	autobuf struct buf text = BUF_INIT(STATE_FILE_MAX);
	AUTO(json_free) struct json_doc *want = NULL, *is = NULL;
	const struct json_pointer root = JSON_POINTER_INIT;
	struct err none;

	where[0] = '\0';
	if (agent_state_read(folder, s->name, &text, e) < 0)
		return e->code == ERR_PATH_NOT_FOUND ? 1 : -1; /* it is written at the start */
	if (!s->json.text.n)
		return str_eq(s->text, buf_str(&text));
	want = json_parse(s->json.text, NULL, e);
	if (!want)
		return -1;
	/* Comments and commas, as editors leave them. */
	is = config_strip_loosely(text.p, text.n, &none) < 0
		   ? NULL
		   : json_parse(buf_str(&text), NULL, &none);
	return is && state_says(json_root(want), json_root(is), root, 0, where);
}
