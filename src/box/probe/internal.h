#pragma once
/* Shared by the files of the probe: facts about the host, and one function for each try. */
#include <stdbool.h>
#include <stddef.h>

#include "box/probe/probe.h"

/* Facts that determine the remedies. Filled once, before the tries. */
struct probe_host {
	bool root; /* of the first user namespace, with CAP_SYS_ADMIN */
	bool admin; /* root with it of any: namespaces need no user namespace around them */
	bool proc; /* /proc is mounted */
	bool chrooted; /* certainly; an unprivileged user can't always tell */
	bool filtered; /* this process has a seccomp filter, as in container engines */
	bool container; /* a container engine has left its mark */
	char kernel[80];
	unsigned kernel_major, kernel_minor;
	long userns_switch; /* kernel.unprivileged_userns_clone; -1 if absent, as the next two */
	long userns_max; /* user.max_user_namespaces */
	long userns_apparmor; /* kernel.apparmor_restrict_unprivileged_userns */
};
void probe_host_fill(struct probe_host *ret_host);

/* A try runs in a child process of its own and may change that process freely. It returns 0, or the
 * errno that ended it (ENODATA if none fits), and describes what it found. */
struct probe_try {
	const struct probe_host *host;
	char *detail; /* sizeof(probe_result.detail) */
};

/* Fills the detail and returns errnum, so that a try ends in one line. */
int probe_say(const struct probe_try *t, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same with the error's name: "EPERM from unshare". */
int probe_failed(const struct probe_try *t, int errnum, const char *what);

/* Makes a user namespace with this user as its only one. 0 or errno; *ret_what names the step. */
int probe_enter_userns(const char **ret_what);

int probe_try_kernel(const struct probe_try *t);
int probe_try_container(const struct probe_try *t);
int probe_try_userns(const struct probe_try *t);
int probe_try_mountns(const struct probe_try *t);
int probe_try_pidns(const struct probe_try *t);
int probe_try_netns(const struct probe_try *t);
int probe_try_ipcns(const struct probe_try *t);
int probe_try_utsns(const struct probe_try *t);
int probe_try_cgroupns(const struct probe_try *t);
int probe_try_tmpfs(const struct probe_try *t);
int probe_try_overlay(const struct probe_try *t);
int probe_try_procfs(const struct probe_try *t);
int probe_try_pidfd(const struct probe_try *t);
int probe_try_seccomp(const struct probe_try *t);
int probe_try_landlock(const struct probe_try *t);
int probe_try_cgroup_memory(const struct probe_try *t);
int probe_try_cgroup_pids(const struct probe_try *t);
int probe_try_cgroup_cpu(const struct probe_try *t);
int probe_try_cgroup_freezer(const struct probe_try *t);

/* The remedy for a feature whose try failed with errnum. config names the kernel's build option, or
 * is NULL. */
void probe_remedy(const struct probe_host *host, const char *feature, const char *config,
		  int errnum, char *ret, size_t size);
