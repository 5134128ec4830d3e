// Providers that give anybody a free mailbox, and access providers that give one to each customer.

/** A-labels in lower case. Operators add others in `address-lists/free-providers.txt`. */
export const freeProviders: ReadonlySet<string> = new Set(
  `
  126.com 139.com 163.com 188.com 189.cn 21cn.com abv.bg aim.com alice.it aliceadsl.fr aliyun.com aol.co.uk aol.com
  aol.de aol.fr aon.at arcor.de atlas.cz att.net autorambler.ru azet.sk bbox.fr bellsouth.net bigmir.net bigpond.com
  bigpond.net.au bk.ru bluewin.ch blueyonder.co.uk bol.com.br btinternet.com centrum.cz centrum.sk charter.net
  chello.nl citromail.hu clix.pt club-internet.fr comcast.net cox.net daum.net dir.bg disroot.org docomo.ne.jp
  earthlink.net email.com email.cz email.it excite.com ezweb.ne.jp fastmail.com fastmail.fm foxmail.com free.fr
  freemail.hu freenet.de frontier.com gazeta.pl globo.com gmail.com gmx.at gmx.ch gmx.co.uk gmx.com gmx.de gmx.fr
  gmx.net gmx.us googlemail.com hanmail.net hetnet.nl home.nl hotmail.be hotmail.ca hotmail.ch hotmail.cl
  hotmail.co.jp hotmail.co.kr hotmail.co.nz hotmail.co.th hotmail.co.uk hotmail.co.za hotmail.com hotmail.com.ar
  hotmail.com.au hotmail.com.br hotmail.com.tr hotmail.com.vn hotmail.cz hotmail.de hotmail.dk hotmail.es hotmail.fi
  hotmail.fr hotmail.gr hotmail.hu hotmail.it hotmail.lt hotmail.lv hotmail.my hotmail.nl hotmail.no hotmail.ph
  hotmail.ro hotmail.rs hotmail.se hotmail.sg hotmail.sk hushmail.com i.softbank.jp i.ua icloud.com ig.com.br
  iinet.net.au in.com inbox.com inbox.lt inbox.lv inbox.ru indamail.hu indiatimes.com interia.eu interia.pl
  internet.ru inwind.it iol.it iol.pt juno.com kakao.com keemail.me kolumbus.fi kpnmail.nl laposte.net lenta.ru
  libero.it list.ru live.at live.be live.ca live.cl live.cn live.co.uk live.co.za live.com live.com.ar live.com.au
  live.com.mx live.com.my live.com.pt live.com.sg live.de live.dk live.fi live.fr live.hk live.ie live.in live.it
  live.jp live.nl live.no live.ru live.se luukku.com lycos.com mac.com mail.bg mail.com mail.dk mail.ee mail.ru
  maktoob.com me.com meta.ua msn.com mynet.com myrambler.ru nate.com naver.com netzero.net neuf.fr nifty.com
  ntlworld.com o2.co.uk o2.pl oi.com.br one.lt onet.eu onet.pl online.de online.no op.pl optonline.net optusnet.com.au
  orange.fr outlook.be outlook.cl outlook.co.id outlook.co.il outlook.co.th outlook.com outlook.com.ar outlook.com.au
  outlook.com.br outlook.com.gr outlook.com.tr outlook.com.vn outlook.cz outlook.de outlook.dk outlook.es outlook.fr
  outlook.hu outlook.ie outlook.in outlook.it outlook.jp outlook.kr outlook.lv outlook.my outlook.ph outlook.pt
  outlook.sa outlook.sg outlook.sk planet.nl pm.me poczta.fm poczta.onet.pl post.cz post.sk posteo.de posteo.net
  proton.me protonmail.ch protonmail.com qq.com r7.com rambler.ru rediffmail.com riseup.net ro.ru roadrunner.com
  rocketmail.com rogers.com rr.com runbox.com sapo.pt sbcglobal.net seznam.cz sfr.fr shaw.ca sify.com sina.cn sina.com
  sky.com skynet.be softbank.ne.jp sohu.com spray.se t-online.de telefonica.net telenet.be terra.com.br terra.es
  tin.it tiscali.co.uk tiscali.it tlen.pl tom.com tpg.com.au tut.by tuta.com tuta.io tutamail.com tutanota.com
  tutanota.de ukr.net uol.com.br upcmail.nl usa.com verizon.net videotron.ca vip.163.com vip.qq.com vip.sina.com
  virgilio.it virginmedia.com voila.fr volny.cz vp.pl walla.co.il walla.com wanadoo.fr web.de webmail.co.za
  windowslive.com windstream.net wp.pl xs4all.nl xtra.co.nz ya.ru yahoo.at yahoo.be yahoo.ca yahoo.cn yahoo.co.id
  yahoo.co.in yahoo.co.jp yahoo.co.kr yahoo.co.nz yahoo.co.th yahoo.co.uk yahoo.co.za yahoo.com yahoo.com.ar
  yahoo.com.au yahoo.com.br yahoo.com.cn yahoo.com.hk yahoo.com.mx yahoo.com.my yahoo.com.ph yahoo.com.sg yahoo.com.tr
  yahoo.com.tw yahoo.com.vn yahoo.cz yahoo.de yahoo.dk yahoo.es yahoo.fi yahoo.fr yahoo.gr yahoo.hu yahoo.ie yahoo.in
  yahoo.it yahoo.nl yahoo.no yahoo.pl yahoo.pt yahoo.ro yahoo.se yandex.by yandex.com yandex.kz yandex.ru yandex.ua
  yeah.net ymail.com ziggo.nl zipmail.com.br zoho.com zohomail.com zohomail.eu zoznam.sk
  `
    .trim()
    .split(/\s+/),
)
