/* `holt cp` to a sandbox. A child process packs into a pipe, which is the body of the request. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "box/archive/tree_error.h"
#include "cli/files/cp.h"

/* The process that packs. */
struct packer {
	pid_t pid;
	int archive, verdict; /* ends of pipes */
	const char *path;
	bool ended; /* by itself, with all of it */
};

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

/* The end of the pipe is the end of the archive only if the child succeeded. */
static size_t end_packing(struct packer *p, struct err *e)
{
	struct tree_failure f = { .what = TREE_KILLED };

	if (fd_read(p->verdict, &f, sizeof(f)) < 0)
		f = (struct tree_failure){ .what = TREE_KILLED };
	p->ended = f.what == TREE_FINE;
	if (p->ended)
		return 0;
	tree_error(&f, p->path, e);
	return SIZE_MAX;
}

static size_t give_packed(void *arg, char *to, size_t n, struct err *e)
{
	struct packer *p = arg;
	ssize_t got;

	do {
		got = read(p->archive, to, n);
	} while (got < 0 && errno == EINTR);
	if (got > 0)
		return (size_t)got;
	return p->ended ? 0 : end_packing(p, e);
}

static _Noreturn void pack(const char *path, const char *name, int archive, int verdict)
{
	const struct tar_pack_opts o = { .name = name };
	struct tree_failure f;

	signal(SIGPIPE, SIG_IGN);
	tar_pack(AT_FDCWD, path, &o, archive, &f);
	if (fd_write(verdict, &f, sizeof(f)) < 0)
		_exit(1);
	_exit(0);
}

static int cp_up_start(struct packer *p, const char *path, const char *name, struct err *e)
{
	int archive[2], verdict[2];

	if (pipe2(archive, O_CLOEXEC) < 0)
		return err_sys(e, errno, "pipe");
	if (pipe2(verdict, O_CLOEXEC) < 0) {
		close(archive[0]);
		close(archive[1]);
		return err_sys(e, errno, "pipe");
	}
	*p = (struct packer){
		.pid = fork(), .archive = archive[0], .verdict = verdict[0], .path = path
	};
	if (p->pid == 0) {
		close(archive[0]);
		close(verdict[0]);
		pack(path, name, archive[1], verdict[1]);
	}
	close(archive[1]);
	close(verdict[1]);
	return 0;
}

static void cp_up_stop(struct packer *p)
{
	close(p->archive);
	close(p->verdict);
	if (p->pid > 0)
		waitpid(p->pid, NULL, 0);
}

static int send_packed(struct hub_link *l, const char *url, const char *path, const char *name,
		       struct err *e)
{
	struct packer p;
	int rc;

	if (cp_up_start(&p, path, name, e) < 0)
		return -1;
	rc = p.pid < 0 ? err_sys(e, errno, "fork") : hub_link_upload(l, url, give_packed, &p, e);
	cp_up_stop(&p);
	return rc;
}

int cp_up(struct hub_link *l, const char *from, const struct cp_end *to, struct err *e)
{
	char url[CP_URL_MAX], own[CP_PATH_MAX], dir[CP_PATH_MAX], name[CP_PATH_MAX];
	enum cp_kind kind;
	struct stat st;

	if (strcmp(from, "-") == 0)
		return cp_url(url, to->name, to->path, e) < 0
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
	    cp_url(url, to->name, dir, e) < 0)
		return -1;
	return send_packed(l, url, from, name, e);
}
