// Types of imported style sheets.
declare module '*.css'
