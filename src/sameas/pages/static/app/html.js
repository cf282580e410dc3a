// The few functions that every page is written with. Text put into a template is text: nothing here makes HTML of it.
export {
  html,
  render,
  Component,
  useState,
  useEffect,
  useLayoutEffect,
  useRef,
  useMemo,
  useCallback,
} from "../vendor/preact-htm.js";
