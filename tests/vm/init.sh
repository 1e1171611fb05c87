# The guest's first process, once it has a root that can be left. $1: the port the verdicts go to.
export PATH=/usr/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm /dev/mqueue
mount -t devpts -o ptmxmode=0666 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t mqueue mqueue /dev/mqueue
ln -s /proc/self/fd /dev/fd
chmod 0666 /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/ptmx /dev/console
mknod -m 0666 /dev/walls c 1 5
echo guest: up >/dev/console
mount -t cgroup2 cgroup2 /sys/fs/cgroup
hostname cordon-guest
ifconfig lo up
[ ! -e /proc/sys/dev/tty/legacy_tiocsti ] || echo 1 >/proc/sys/dev/tty/legacy_tiocsti

# A disk, for what only a disk has: pages that are a cache.
insmod /vm/loop.ko
truncate -s 96M /vm/disk
mke2fs -F /vm/disk >/dev/null 2>&1
mkdir /disk
mount -o loop /vm/disk /disk && mkdir -m 1777 /disk/work
if [ -e /vm/quota ]; then
	insmod /vm/quota_tree.ko && insmod /vm/quota_v2.ko
	mkdir /quota && mount -o loop,prjquota /vm/quota /quota && chmod 1777 /quota
fi

# As a service manager would: root in a group of its own, and one that is delegated to an ordinary user.
cd /sys/fs/cgroup
for controller in memory pids cpu; do echo +$controller >cgroup.subtree_control; done
mkdir -p system/session user/session
for controller in memory pids cpu; do echo +$controller >user/cgroup.subtree_control; done
for group in user user/session; do
	chown 1000:1000 $group $group/cgroup.procs $group/cgroup.subtree_control $group/cgroup.threads
done
echo $$ >system/session/cgroup.procs

steps() { # WHO UID GROUP
	(echo 0 >/sys/fs/cgroup/$3/session/cgroup.procs && exec guest as $2 sh /vm/steps-$1) </dev/null >/dev/console 2>&1
}
steps user 1000 user
steps root 0 system

touch /vm/results/complete
cd /vm/results && tar czf /vm/results.tar .
stty -F $1 raw
cat /vm/results.tar >$1
guest end 0
