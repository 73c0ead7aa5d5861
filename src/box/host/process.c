/* Processes of a sandbox, which its init lists and signals for us. What it says is hostile. */
#include <errno.h>
#include <stdlib.h>

#include "box/host/internal.h"

struct process_job {
	struct init_call call; /* first: the two are cast */
	enum process_op op;
	uint32_t pid;
	union {
		process_list_cb list;
		process_cb signal;
	} on_done;
	void *arg;
	struct err err; /* why the request could not be sent */
};

static void free_job(struct process_job *j)
{
	sandbox_unref(j->call.sb);
	free(j);
}

static void finish_error(struct process_job *j, const struct err *err)
{
	if (j->op == PROCESS_OP_LIST)
		j->on_done.list(j->arg, NULL, 0, false, err);
	else
		j->on_done.signal(j->arg, err);
	free_job(j);
}

/* Stops at the first entry that is incomplete. */
static size_t read_entries(const struct im_process_done *d, size_t n, struct process *out)
{
	const char *at = (const char *)(d + 1), *end = (const char *)d + n;
	size_t count = 0;

	while (count < d->entries && count < PROCESS_LIST_MAX) {
		struct im_process_entry entry;

		if ((size_t)(end - at) < sizeof(entry))
			break;
		memcpy(&entry, at, sizeof(entry));
		at += sizeof(entry);
		if ((size_t)(end - at) < entry.command_len)
			break;
		out[count++] = (struct process){
			.pid = entry.pid,
			.parent = entry.parent,
			.state = entry.state >= 'A' && entry.state <= 'z' ? (char)entry.state : '?',
			.cpu_ms = entry.cpu_ms,
			.bytes = entry.bytes,
			.age_ms = entry.age_ms,
			.command = { at, entry.command_len },
		};
		at += entry.command_len;
	}
	return count;
}

static int by_pid(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static void process_finish(struct process_job *j, const struct im_process_done *d, size_t n)
{
	static struct process processes[PROCESS_LIST_MAX];
	size_t count;

	if (j->op == PROCESS_OP_LIST) {
		count = read_entries(d, n, processes);
		qsort(processes, count, sizeof(processes[0]), by_pid);
		j->on_done.list(j->arg, processes, count, d->truncated != 0, NULL);
	} else {
		j->on_done.signal(j->arg, NULL);
	}
	free_job(j);
}

static void on_reply(struct init_call *c, const void *answer, size_t n, int fd,
		     const struct err *err)
{
	struct process_job *j = (struct process_job *)c;
	const struct im_process_done *d = answer;
	struct err e;

	close_fd(&fd); /* there is none */
	if (!err && d->errnum == ESRCH) {
		if (j->op == PROCESS_OP_SIGNAL_EXEC)
			err_set(&e, ERR_PROCESS_NOT_FOUND, "the program has ended");
		else
			err_set(&e, ERR_PROCESS_NOT_FOUND, "there is no process %u in the sandbox",
				j->pid);
		err = &e;
	} else if (!err && d->errnum) {
		err_sys(&e, d->errnum, "the processes of sandbox %s", c->sb->id);
		err = &e;
	}
	if (err)
		finish_error(j, err);
	else
		process_finish(j, d, n);
}

static void on_late_error(void *arg)
{
	struct process_job *j = arg;

	finish_error(j, &j->err);
}

static void process_start(struct process_job *j, struct im_process *m)
{
	struct sandbox *sb = j->call.sb;

	m->h.type = IM_PROCESS;
	m->op = j->op;
	if (j->err.code == ERR_NONE && init_call_send(&j->call, &m->h, sizeof(*m), &j->err) == 0)
		return;
	if (box_later(sb->box, on_late_error, j, &j->err) < 0)
		abort();
}

static struct process_job *new_job(struct sandbox *sb, enum process_op op, void *arg)
{
	struct process_job *j = calloc(1, sizeof(*j));

	if (!j)
		abort(); /* without memory, no promise of an answer can be kept */
	j->call = (struct init_call){ .sb = sandbox_ref(sb),
				      .answer = IM_PROCESS_DONE,
				      .answer_size = sizeof(struct im_process_done),
				      .on_reply = on_reply };
	j->op = op;
	j->arg = arg;
	return j;
}

void process_list_start(struct sandbox *sb, process_list_cb on_done, void *arg)
{
	struct process_job *j = new_job(sb, PROCESS_OP_LIST, arg);

	j->on_done.list = on_done;
	process_start(j, &(struct im_process){ .pid = 0 });
}

void process_signal_start(struct sandbox *sb, uint32_t pid, int signal, process_cb on_done,
			  void *arg)
{
	struct process_job *j = new_job(sb, PROCESS_OP_SIGNAL, arg);

	j->on_done.signal = on_done;
	j->pid = pid;
	if (pid <= 1 || pid > INT32_MAX)
		err_set(&j->err, ERR_INVALID, "a process is named by a number from 2 on");
	else if (signal < 1 || signal > PROCESS_SIGNAL_MAX)
		err_set(&j->err, ERR_INVALID, "a signal is a number from 1 to %d",
			PROCESS_SIGNAL_MAX);
	process_start(j, &(struct im_process){ .pid = (int32_t)pid, .signal = signal });
}

void process_signal_exec(struct sandbox *sb, uint32_t exec, int signal, process_cb on_done,
			 void *arg)
{
	struct process_job *j = new_job(sb, PROCESS_OP_SIGNAL_EXEC, arg);

	j->on_done.signal = on_done;
	process_start(j, &(struct im_process){ .pid = (int32_t)exec, .signal = signal });
}
