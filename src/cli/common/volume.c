#include "cli/common/volume.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "cli/common/option.h"

/* Reads the text behind the second colon. */
static bool read_mode(const char *mode, struct volume_words *ret)
{
	static const char rw[] = "rw", all[] = "-all", size[] = ",size=";

	ret->size = 0;
	ret->writable = ret->all = false;
	if (strcmp(mode, "ro") == 0)
		return true;
	if (strncmp(mode, rw, strlen(rw)) != 0)
		return false;
	mode += strlen(rw);
	ret->writable = true;
	ret->all = strncmp(mode, all, strlen(all)) == 0;
	if (ret->all)
		mode += strlen(all);
	if (!*mode)
		return true;
	return strncmp(mode, size, strlen(size)) == 0 &&
	       option_size(mode + strlen(size), &ret->size) && ret->size > 0;
}

static int volume_explain(const char *host, const char *link, struct err *e)
{
	char real[PATH_MAX];

	if (errno != ELOOP || !realpath(link, real))
		return err_set(e, ERR_INVALID, "-v %.120s: %s", host, strerror(errno));
	return err_set(e, ERR_INVALID,
		       "-v: '%.80s' is a link that a sandbox may have put there, so it is not "
		       "followed: name %.100s, if that is meant",
		       link, real);
}

int volume_read(const char *text, struct volume_words *ret, struct err *e)
{
	const char *inside = strstr(text, ":/"), *mode = inside ? strchr(inside + 1, ':') : NULL;
	char host[PATH_MAX];

	if (!inside || inside == text || (size_t)(inside - text) >= sizeof(host) ||
	    !read_mode(mode ? mode + 1 : "ro", ret))
		return err_set(e, ERR_INVALID,
			       "-v takes HOST:INSIDE with an absolute INSIDE, and behind it :ro, "
			       ":rw, :rw-all, :rw,size=N or :rw-all,size=N, not '%.80s'",
			       text);
	snprintf(host, sizeof(host), "%.*s", (int)(inside - text), text);
	if (path_resolve(host, ret->host) < 0)
		return volume_explain(host, ret->host, e);
	inside++;
	ret->inside = (struct str){ inside, mode ? (size_t)(mode - inside) : strlen(inside) };
	return 0;
}

bool volume_tell(const struct volume_words *v)
{
	struct stat st;

	if (!v->writable || v->all || stat(v->host, &st) < 0 || !S_ISDIR(st.st_mode))
		return false;
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "holt: what programs of this machine act on (.git/config, .vscode "
				"and more) is read-only in the folder; :rw-all gives all of it\n");
	return true;
}
