#!/usr/bin/env bash
# `kiln aot --emit-slurm` under a real Slurm: one controller and two node daemons on this machine, in a folder of their own, with a munge of
# their own. $1: the program kiln. Ends with 77, which is "skipped" to ctest, where Slurm or munge is not installed or does not start.
set -euo pipefail

kiln=$1
for program in munged slurmctld slurmd sbatch sinfo; do
  PATH=$PATH:/usr/sbin:/sbin command -v $program >/dev/null || { echo "skipped: there is no $program" && exit 77; }
done
PATH=$PATH:/usr/sbin:/sbin
work=$(mktemp -d)
cleanup() {
  local pids
  pids=$(jobs -p)
  [[ ! $pids ]] || kill $pids 2>/dev/null || :
  wait 2>/dev/null || :
  rm -rf "$work"
}
trap cleanup EXIT
chmod 755 "$work" # munge's clients have to reach its socket

# wait_for SECONDS COMMAND...: until the command succeeds
wait_for() {
  local until=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < until)) || return 1
    sleep 0.1
  done
}
skip() {
  echo "skipped: $1"
  tail -n 5 "$work"/*.log "$work"/*.out 2>/dev/null || :
  exit 77
}

cd "$work"
mkdir munge state spool
dd if=/dev/urandom of=munge/key bs=1024 count=1 status=none
chmod 400 munge/key
munged --force --foreground --key-file="$work/munge/key" --socket="$work/munge/socket" --pid-file="$work/munge/pid" \
  --log-file="$work/munge/log" --seed-file="$work/munge/seed" >munged.out 2>&1 &
wait_for 10 test -S munge/socket || skip 'munged does not start here'

# Ports by the process id, so that two of these tests do not meet.
port=$((20000 + $$ % 10000)) host=$(hostname -s) user=$(id -un)
cat >slurm.conf <<END
ClusterName=kiln
SlurmctldHost=$host(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CredType=cred/munge
SlurmUser=$user
SlurmdUser=$user
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool/%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/%n.log
SlurmctldPort=$port
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerParameters=sched_interval=1
ReturnToService=2
NodeName=n[1-2] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + 2))] CPUs=1
PartitionName=kiln Nodes=ALL Default=YES State=UP
END
export SLURM_CONF=$work/slurm.conf
slurmctld -D >slurmctld.out 2>&1 &
wait_for 15 sinfo || skip 'slurmctld does not start here'
for node in n1 n2; do slurmd -D -N $node >$node.out 2>&1 & done
nodes_idle() { [[ $(sinfo --noheader --format='%D %T') == '2 idle' ]]; }
wait_for 20 nodes_idle || skip 'the node daemons do not start here'

cat >kernels.jsonl <<'END'
{"catalog": "softmax", "cols": [512, 1024, 2048]}
{"catalog": "rmsnorm", "cols": [512, 1024, 2048]}
END
"$kiln" aot kernels.jsonl --arch gfx942,gfx950 -o cache --shards 4 --emit-slurm job.sh
timeout 300 sbatch --wait --output="$work/task-%a.out" job.sh
cat task-*.out
"$kiln" aot kernels.jsonl --arch gfx942,gfx950 -o cache --dry-run | tail -n 1 | grep -F '12 kernels: 0 compiled, 12 cached, 0 missing'
"$kiln" cache verify -c cache
[[ $(ls task-*.out | wc -l) == 4 ]]
