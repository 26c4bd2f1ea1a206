# SPDX-License-Identifier: BSD-3-Clause
# Gives the interface a0 all kinds of state that leaving its driver takes away.
    echo 0 >/proc/sys/net/ipv6/conf/a0/accept_dad
    ip link set a0 address 02:00:00:00:00:07 mtu 1300 up
    ip address add 10.1.2.3/24 dev a0; ip address add 10.1.2.4/24 dev a0 label a0:second
    ip address add 10.5.0.1 peer 10.5.0.2/32 dev a0
    ip -6 address add 2001:db8:9::1/64 dev a0 nodad noprefixroute
    ip -6 address add 2001:db8::1/64 dev a0 nodad metric 77
    ip route add 10.7.0.0/16 via 10.1.2.9 metric 5 table 100 src 10.1.2.4 mtu lock 1200
    ip route add 10.8.0.0/16 nexthop via 10.1.2.7 weight 2 nexthop via 10.1.2.8 dev a0
    ip route add 10.9.0.0/16 via 192.0.2.1 dev a0 onlink tos 4 proto static
    ip route add 10.10.0.0/16 dev a0 scope link hoplimit 9 initcwnd 20 rto_min 7ms
    ip nexthop add id 5 via 10.1.2.99 dev a0; ip route add 10.11.0.0/16 nhid 5
    ip -6 route add 2001:db8:1::/48 via 2001:db8::9 dev a0 metric 9
    ip -6 route add 2001:db8:2::/48 nexthop via 2001:db8::7 dev a0 nexthop via 2001:db8::8 dev a0
