#!/bin/sh
# What runs in the guest of tests/kernel/run. As its first process: mounts what a Debian 12 mounts, tries each test below,
# turns the machine off. With the name of a function: that test, whose exit status says how it went.
export PATH=/usr/bin:/usr/sbin HOME=/root
top=/sys/fs/cgroup

# This is the kernel that all of it is about, and nothing of v1 is in sight.
kernel() {
	uname -r
	grep cgroup /proc/mounts
	case $(uname -r) in 6.1.*) ;; *) return 1 ;; esac
	! grep -q ' cgroup ' /proc/mounts
}

doctor() {
	holt doctor || return 1
	said=$(holt doctor --json)
	case $said in *'"limits":"cgroup2"'*) ;; *) printf '%s\n' "$said"; return 1 ;; esac
}

engine() { # NAME [once]
	name=$1
	shift
	exec /tests/"$name" /usr/libexec/holt "$@"
}

# A group is gone when all that was in it has gone.
remove_group() {
	i=0
	until rmdir "$1" 2>/dev/null; do
		i=$((i + 1))
		[ $i -lt 50 ] || { echo "left: $(find "$1" -type d) with $(cat "$1"/cgroup.procs)"; return 1; }
		sleep 0.2
	done
}

# As a service has it: in a group below the top, which may not hand controllers on while somebody stands in it.
service() {
	echo '+memory +pids +cpu' >$top/cgroup.subtree_control
	mkdir $top/service || return 1
	sh -c 'echo $$ >'$top'/service/cgroup.procs; exec /tests/cgroup2 /usr/libexec/holt once'
	status=$?
	remove_group $top/service && return $status
}

# A group that was given to a user, as systemd's Delegate= does: the limits of his sandboxes are control groups, too.
delegated() {
	echo '+memory +pids +cpu' >$top/cgroup.subtree_control
	mkdir $top/user || return 1
	chown nobody $top/user $top/user/cgroup.procs $top/user/cgroup.subtree_control $top/user/cgroup.threads
	sh -c 'echo $$ >'$top'/user/cgroup.procs; exec su -s /bin/sh nobody -c "exec /tests/cgroup2 /usr/libexec/holt"'
	status=$?
	remove_group $top/user && return $status
}

# An image is mapped to the sandbox's user, by the mount calls that this kernel has.
image() {
	mkdir -p /tmp/image/bin /tmp/image/etc
	cp /usr/bin/busybox /tmp/image/bin/busybox
	ln -sf busybox /tmp/image/bin/sh
	echo 'of the image' >/tmp/image/etc/motd
	chmod -R a+rX /tmp/image
	holt images import /tmp/image small || return 1
	got=$(holt run --template small -- /bin/sh -c \
		'echo changed >/etc/new; busybox cat /etc/motd; busybox id -u; busybox stat -c %u /etc/motd') || return 1
	printf '%s\n' "$got"
	[ "$got" = "$(printf 'of the image\n1000\n1000')" ] && [ ! -e /tmp/image/etc/new ]
}

# Without privileges this kernel's overlays can't be had whole: images are refused by name, and the host's template works.
image_of_a_user() {
	mkdir -p /tmp/user && chown nobody /tmp/user
	su -s /bin/sh nobody -c '
		export HOME=/tmp/user
		holt images import /tmp/image small || exit 1
		said=$(holt run --template small -- /bin/sh -c true 2>&1) && exit 1
		printf "%s\n" "$said"
		case $said in *6.6*) ;; *) exit 1 ;; esac
		[ "$(holt run -- sh -c "echo from a sandbox")" = "from a sandbox" ]'
}

# Forced by the machine, not by us: what a killed hub and warden leave is removed by the janitor.
killed() {
	holt run -- sleep 1000 &
	hub=$!
	i=0
	until ls -d $top/holt-w*/[0-9]* >/dev/null 2>&1; do
		i=$((i + 1))
		[ $i -lt 60 ] || { echo 'no sandbox'; return 1; }
		sleep 0.5
	done
	kill -9 $hub
	for pid in $(pidof holt-warden); do # the janitor's and the broom's are that program, too
		[ "$(cat /proc/$pid/comm)" != holt-warden ] || kill -9 $pid
	done
	i=0
	while ls -d $top/holt-w* >/dev/null 2>&1 || pidof holt-warden holt-init >/dev/null; do
		i=$((i + 1))
		[ $i -lt 60 ] || { ls -d $top/holt-w* $top/holt-w*/*/; ps -o pid,ppid,stat,comm; return 1; }
		sleep 0.5
	done
}

if [ $# -gt 0 ]; then
	"$@"
	exit
fi

mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /dev/pts /dev/shm
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs -o mode=755 run /run
mount -t cgroup2 cgroup2 $top
chown -R 0:0 /usr /etc /tests /root # whoever made the file system
chown 0:0 / /tmp /var /var/tmp
ip link set lo up

# The seconds are for a guest that runs alone. Beside the other lanes of a test run it has half a
# processor.
try() { # NAME SECONDS FUNCTION [ARGUMENT]...: its output, then its status
	name=$1 seconds=$((3 * $2))
	shift 2
	case ",$only," in ,, | *",$name,"*) ;; *) return ;; esac
	timeout -s KILL "$seconds" /guest.sh "$@" </dev/null 2>&1
	echo "@@ $name $?"
}

# What depends on the kernel shows at the first times; the rest is repeated outside.
export HOLT_SOAK=once
only=$(sed -n 's/.* only=\([^ ]*\).*/\1/p' /proc/cmdline)
try kernel 20 kernel
try doctor 60 doctor
try cgroup2 120 engine cgroup2 once
try a_service 120 service
try a_delegated_group 120 delegated
try image 60 image
try image_of_a_user 90 image_of_a_user
try killed 150 killed
for name in pause mount write; do
	try $name 200 engine $name
done
try sleep 250 engine sleep once
echo '@@ end'
sync
reboot -f
