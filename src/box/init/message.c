#include "box/init/message.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

bool message_check(const void *msg, size_t n)
{
	const struct im_head *h = msg;

	if (n < sizeof(*h))
		return false;
	switch ((enum im_type)h->type) {
	case IM_EXEC:
		return n >= sizeof(struct im_exec);
	case IM_FILE:
		return n >= sizeof(struct im_file);
	case IM_SIGNAL:
		return n == sizeof(struct im_signal);
	case IM_RESET:
		return n == sizeof(struct im_reset);
	case IM_PROCESS:
		return n == sizeof(struct im_process);
	case IM_QUIESCE:
	case IM_STOP:
	case IM_CONTINUE:
	case IM_TERMINAL:
		return n == sizeof(*h);
	default:
		return false;
	}
}

int message_exec(struct im_exec *m, size_t n, char *strings[STRINGS_MAX], char **ret_cwd)
{
	char *at = (char *)(m + 1), *end = (char *)m + n;
	char **out = strings + STRINGS_BEFORE;
	uint32_t total = m->argc + m->envc;

	if (m->argc < 1 || m->argc > STRINGS_MAX || m->envc > STRINGS_MAX ||
	    total + 8 > STRINGS_MAX || at >= end)
		return -1;
	*ret_cwd = at;
	at += strlen(at) + 1;
	for (uint32_t i = 0; i < total; i++) {
		if (at >= end)
			return -1;
		if (i == m->argc)
			*out++ = NULL;
		*out++ = at;
		at += strlen(at) + 1;
	}
	if (m->envc == 0)
		*out++ = NULL;
	*out = NULL;
	return 0;
}

int message_file(const struct im_file *m, size_t n, const char **ret_path, const char **ret_second,
		 const char **ret_end)
{
	const char *path = (const char *)(m + 1), *end = (const char *)m + n;

	if (path >= end || path[0] != '/' || strlen(path) >= PATH_MAX)
		return -1;
	*ret_path = path;
	*ret_second = path + strlen(path) + 1;
	*ret_end = end;
	if (*ret_second > end)
		*ret_second = end;
	return 0;
}

bool stat_line_read(const char *line, struct stat_line *ret)
{
	static const char format[] = " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu "
				     "%*d %*d %*d %*d %ld %*d %llu %*u %ld";
	const char *name = strchr(line, '('), *name_end = strrchr(line, ')');
	unsigned long user, system;
	unsigned long long start;
	struct stat_line got = { 0 };

	if (!name || !name_end || name_end < name ||
	    sscanf(name_end + 1, format, &got.state, &got.parent, &user, &system, &got.threads,
		   &start, &got.pages) != 7)
		return false;
	got.name = name + 1;
	got.name_n = (size_t)(name_end - got.name);
	got.user = user;
	got.system = system;
	got.start = start;
	*ret = got;
	return true;
}
