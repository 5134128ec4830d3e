# Verdicts of Mail::DKIM. Input: {"zone", "failing", "mails": [{raw}]}. Output: a list of {dkim, arc}.
use strict;
use warnings;
use JSON::PP;
use MIME::Base64;
use Mail::DKIM::Verifier;
use Mail::DKIM::ARC::Verifier;
use Net::DNS::RR;

my $asked = decode_json(do { local $/; <STDIN> });
my %failing = map { $_ => 1 } @{ $asked->{failing} };
no warnings 'redefine';
*Mail::DKIM::DNS::query = sub {
    my ($name) = map { lc } @_;
    die "SERVFAIL\n" if $failing{$name};
    my $texts = $asked->{zone}{$name}{TXT} or return ();
    return map { Net::DNS::RR->new(name => $name, type => 'TXT', txtdata => $_) } @$texts;
};

sub judge {
    my $raw = decode_base64(shift->{raw});
    my $verifier = Mail::DKIM::Verifier->new;
    $verifier->PRINT($raw);
    $verifier->CLOSE;
    my @results = map { word($_) } $verifier->signatures;
    my $chain = Mail::DKIM::ARC::Verifier->new;
    $chain->PRINT($raw);
    $chain->CLOSE;
    my $knows = !grep { $_ && ($_->algorithm // '') =~ /ed25519/ } @{ $chain->{signatures} };
    return { dkim => \@results, arc => $knows ? $chain->result : undef };
}

# Mail::DKIM supports only RSA.
sub word {
    my ($signature) = @_;
    return undef if ($signature->algorithm // '') =~ /ed25519/;
    return $signature->result_detail =~ /SERVFAIL/ ? 'temperror' : $signature->result;
}

print encode_json([ map { judge($_) } @{ $asked->{mails} } ]);
