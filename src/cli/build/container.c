/*
 * Builds a Containerfile with buildah, a program with its own store of layers. buildah runs the
 * commands of the file with the rights of the caller and with a network. Its result is imported
 * like any untrusted image.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/build/build.h"
#include "cli/common/worker.h"

struct job {
	int context; /* the folder, open */
	const char *file;
};

#define ISOLATION "BUILDAH_ISOLATION"
enum { ULIMIT = 64 }; /* bytes of an option */

/* crun, which buildah starts for each command, refuses control groups of both versions. */
static bool has_mixed_groups(void)
{
	autoclose int fd = open("/sys/fs/cgroup/unified/cgroup.controllers", O_RDONLY | O_CLOEXEC);
	char text[2];

	return fd >= 0 && read(fd, text, sizeof(text)) > 1;
}

/* In the worker's process. The user's own choice goes before. */
static void choose_isolation(void)
{
	if (getenv(ISOLATION) || !has_mixed_groups())
		return;
	fputs("holt: this host has control groups of both versions, which crun refuses: buildah\n"
	      "      isolates commands by chroot alone (" ISOLATION ")\n",
	      stderr);
	setenv(ISOLATION, "chroot", 0);
}

static int run_buildah(int dir, const char *const *argv, struct err *e)
{
	const struct worker_program p = {
		.argv = argv,
		.dir = dir,
		.without = "install the package buildah, or write a holt.json (man holt-build)",
	};
	int status = worker_exec(&p, e);

	if (status > 0)
		return err_set(e, ERR_BUILD,
			       "buildah %s ended with status %d; if it could not start a container "
			       "here, " ISOLATION "=chroot in the environment can help",
			       argv[1], status);
	return status;
}

/* Reads the image's id from the file that buildah wrote it to. */
static int read_id(int dir, char ret[HASH_HEX + 1], struct err *e)
{
	autoclose int fd = openat(dir, "id", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char text[HASH_HEX + 16] = "";
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	struct str hex = { text, n < 0 ? 0 : (size_t)n };

	if (str_starts(hex, "sha256:")) {
		hex.p += 7;
		hex.n -= 7;
	}
	if (!hash_is_hex(hex))
		return err_set(e, ERR_BUILD, "buildah did not say what it built");
	memcpy(ret, hex.p, HASH_HEX);
	ret[HASH_HEX] = '\0';
	return 0;
}

/* The caller's own limit, as an option, and not more than `most`. With chroot, versions of buildah
 * since 1.39 else want more than the caller may have; older ones have lowered their own before. */
static void say_limit(const char *name, __rlimit_resource_t which, rlim_t most, char ret[ULIMIT])
{
	struct rlimit l = { most, most };

	getrlimit(which, &l);
	snprintf(ret, ULIMIT, "%s=%ju:%ju", name, (uintmax_t)MIN(l.rlim_cur, most),
		 (uintmax_t)MIN(l.rlim_max, most));
}

static int fetch(void *arg, int dir, const char *path, struct err *e)
{
	const struct job *j = arg;
	char id_file[PATH_MAX], id[HASH_HEX + 1], files[ULIMIT], programs[ULIMIT];
	const char *const build[] = { "buildah",  "build",  "--layers", "--format", "oci",
				      "--ulimit", files,    "--ulimit", programs,   "--iidfile",
				      id_file,	  "--file", j->file,	".",	    NULL };
	const char *const push[] = { "buildah", "push", id, "oci:layout:holt", NULL };

	choose_isolation();
	say_limit("nofile", RLIMIT_NOFILE, 1048576, files);
	say_limit("nproc", RLIMIT_NPROC, 32768, programs);
	if (snprintf(id_file, sizeof(id_file), "%s/id", path) >= (int)sizeof(id_file))
		return err_set(e, ERR_INVALID, "the path of the store of images is too long");
	if (run_buildah(j->context, build, e) < 0 || read_id(dir, id, e) < 0)
		return -1;
	return run_buildah(dir, push, e);
}

int build_container(struct images *s, int dir, const char *file, const char *name,
		    struct image *ret, struct err *e)
{
	const struct image_import spec = { .name = str_of(name) };
	struct job j = { dir, file };
	char given[IMAGE_NAME_MAX + 1];

	return images_fetch(s, fetch, &j, &spec, ret, given, e);
}
