# Verifies with Mail::DKIM. Input: {"records": {name: text}, "messages": [base64]}. Output: a list of booleans.
use strict;
use warnings;
use JSON::PP;
use MIME::Base64;
use Mail::DKIM::Verifier;
use Net::DNS::RR;

my $asked = decode_json(do { local $/; <STDIN> });
no warnings 'redefine';
*Mail::DKIM::DNS::query = sub {
    my ($name) = @_;
    my $text = $asked->{records}{$name};
    return () unless defined $text;
    return (Net::DNS::RR->new(name => $name, type => 'TXT', txtdata => [ $text =~ /.{1,255}/g ]));
};

sub verifies {
    my $verifier = Mail::DKIM::Verifier->new;
    $verifier->PRINT(decode_base64(shift));
    $verifier->CLOSE;
    return (grep { $_->result ne 'pass' } $verifier->signatures) ? JSON::PP::false : JSON::PP::true;
}

print encode_json([ map { verifies($_) } @{ $asked->{messages} } ]);
