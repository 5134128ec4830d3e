// The default theme of VitePress without its fonts, in the colors of the dashboard, with links to the service.
import { withBase } from 'vitepress'
import DefaultTheme from 'vitepress/theme-without-fonts'
import { h } from 'vue'
import '../../src/theme.css'

/** Pages of the service. `target` makes the browser load them, because the router knows only the guide. */
const service = [
  ['/docs', 'API reference'],
  ['/', 'Dashboard'],
] as const

const serviceLinks = () =>
  h(
    'div',
    { class: 'service-links' },
    service.map(([href, text]) => h('a', { href, target: '_self' }, text)),
  )

const notFound = () =>
  h('main', { class: 'not-found vp-doc' }, [
    h('h1', 'Page not found'),
    h('p', [
      'The guide has no page at this address. ',
      h('a', { href: withBase('/') }, 'Start of the guide'),
    ]),
  ])

const slots = {
  'nav-bar-content-after': serviceLinks,
  'nav-screen-content-after': serviceLinks,
  'not-found': notFound,
}

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, slots),
}
