/* `holt cp` to a sandbox. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/files/cp.h"
#include "cli/files/packer.h"

static size_t give_input(void *arg, char *to, size_t n, struct err *e)
{
	ssize_t got;

	do {
		got = read(STDIN_FILENO, to, n);
	} while (got < 0 && errno == EINTR);
	if (got >= 0)
		return (size_t)got;
	err_sys(e, errno, "standard input");
	return SIZE_MAX;
}

static int send_packed(struct hub_link *l, const char *url, const char *path, const char *name,
		       struct err *e)
{
	struct packer p;
	int rc;

	if (packer_start(&p, path, name, e) < 0)
		return -1;
	rc = hub_link_upload(l, url, packer_give, &p, e);
	packer_stop(&p);
	if (rc == 0)
		cp_tell_left_out(p.left_out);
	return rc;
}

int cp_up(struct hub_link *l, const char *from, const struct cp_end *to, struct err *e)
{
	char url[CP_URL_MAX], own[CP_PATH_MAX], dir[CP_PATH_MAX], name[CP_PATH_MAX];
	enum cp_kind kind;
	struct stat st;

	if (strcmp(from, "-") == 0)
		return cp_url(url, to->name, to->path, e) < 0 ||
				       hub_link_literal(url, sizeof(url), e) < 0
			     ? -1
			     : hub_link_upload(l, url, give_input, NULL, e);
	if (stat(from, &st) < 0)
		return err_sys(e, errno, "%.160s", from);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return err_set(e, ERR_NOT_A_FILE, "%.160s is no file and no directory", from);
	cp_own_name(from, own);
	/* that there is nothing yet is no failure */
	if (cp_look(l, to, &kind, e) < 0 && e->code != ERR_SANDBOX_NOT_FOUND)
		return -1;
	if (cp_place(to->path, kind, own, S_ISDIR(st.st_mode), dir, name, e) < 0 ||
	    cp_url(url, to->name, dir, e) < 0 || hub_link_literal(url, sizeof(url), e) < 0)
		return -1;
	return send_packed(l, url, from, name, e);
}
