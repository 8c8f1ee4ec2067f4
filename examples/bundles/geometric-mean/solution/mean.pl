#!/usr/bin/perl
my ($n, $sum) = (0, 0);
while (<STDIN>) {
    for my $x (split) {
        $sum += log($x);
        $n++;
    }
}
printf("%.9f\n", $n ? exp($sum / $n) : 0);
