# SPDX-License-Identifier: BSD-3-Clause
ip() { /usr/sbin/ip "$@"; }
for conf in /proc/sys/net/ipv4/conf/*; do echo 1 >$conf/accept_local; echo 0 >$conf/rp_filter; done
ip rule add pref 100 lookup local
ip rule del pref 0
for i; do
    ip route add 10.9.0.0/24 dev eth$i table $((100 + i))
    ip rule add pref $((10 + i)) oif eth$i lookup $((100 + i))
    for j; do
        [ $i = $j ] || ip neigh replace 10.9.0.$((j + 1)) lladdr 02:53:42:09:00:0$((j + 1)) \
            dev eth$i nud permanent
    done
done
